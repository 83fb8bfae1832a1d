"""Linting for tools with their own list of files: the findings of each file as if it were linted alone."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from memlint.engine.filters.proof import read_proof
from memlint.engine.options import Options
from memlint.engine.run import absolute, configured, run
from memlint.finding import Failure, Finding
from memlint.project import display_path, find_root


class Said(msgspec.Struct):
    """The findings in one file, including suppressed ones, and why it was not checked completely."""

    findings: list[Finding]
    failures: list[str]


def lint_each(paths: Iterable[str], options: Options) -> tuple[dict[str, Said], list[Failure], tuple[str, ...]]:
    """The findings of each file, by its absolute path; the failures of other files; and notices for the user. Excluded
    files are skipped with ``options.force_exclude``. Raises ConfigError."""
    files = list(dict.fromkeys(absolute(path, options.cwd) for path in paths))
    said = {str(file): Said([], []) for file in files}
    shown = {display_path(file, options.cwd): said[str(file)] for file in files}
    others: list[Failure] = []
    outcome = run(list(said), msgspec.structs.replace(options, each=True))
    for finding in outcome.result.findings:
        shown[finding.path].findings.append(finding)
    for failure in outcome.result.failures:
        if failure.path in shown:
            shown[failure.path].failures.append(failure.reason)
        else:
            others.append(failure)
    return said, others, outcome.notices


def check_configuration(path: str, options: Options) -> None:
    """Raise ConfigError if a run on this file would, for a wrong configuration or option."""
    ruling = configured(find_root(absolute(path, options.cwd), options.cwd), options)
    read_proof(ruling.config, options.evidence)
