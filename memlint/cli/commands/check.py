"""``memlint check``: lint and report."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from memlint.cli.output.endings import CLEAN, FAILED, exit_code, say
from memlint.cli.output.reports import check_writable, outputs, report
from memlint.cli.parsing.options import options_of
from memlint.config import ConfigError, patterns
from memlint.engine.options import Options
from memlint.engine.run import STDIN, Outcome, run
from memlint.reading import most_of


def check(parsed: argparse.Namespace) -> int:
    """Run ``memlint check`` and return its exit code. Raises ConfigError for a wrong option or configuration."""
    agree(parsed)
    options = options_of_check(parsed)
    if parsed.write_baseline is not None:
        check_writable(Path(parsed.write_baseline), "--write-baseline")
    for one in outputs(parsed):
        if one.file is not None:
            check_writable(Path(one.file), one.option)
    paths = parsed.paths or ["."]
    if parsed.fix or parsed.fix_only or parsed.diff:
        from memlint.cli.checking.fixing import fix

        return fix(paths, options, parsed)
    if parsed.add_ignore is not None:
        from memlint.cli.checking.ignoring import add

        add(paths, options, parsed)
    if parsed.watch:
        from memlint.cli.checking.watching import check_watchable, watch

        check_watchable()
        return watch(paths, options.cwd, lambda: _check(paths, options, parsed))
    return _check(paths, options, parsed)


def _check(paths: Sequence[str], options: Options, parsed: argparse.Namespace) -> int:
    from memlint.cli.output.progress import progress_bar

    with progress_bar(sys.stderr, quiet=parsed.quiet, verbose=parsed.verbose) as progress:
        outcome = run(paths, options, progress=progress)
    say(outcome, parsed)
    whole = report(outcome, options, parsed, sys.stdout)
    code = exit_code(outcome.result, exit_zero=parsed.exit_zero) if whole else FAILED
    return max(code, keep_up(outcome, parsed))


def keep_up(outcome: Outcome, parsed: argparse.Namespace) -> int:
    """Write the baseline, or report its errors; returns an exit code. Raises ConfigError."""
    asked = parsed.write_baseline or parsed.prune_baseline or parsed.error_stale
    if not asked and all(prepared.baseline is None for prepared, _ in outcome.parts):
        return CLEAN
    from memlint.cli.checking.baseline import keep_up

    return keep_up(outcome, parsed)


def agree(parsed: argparse.Namespace) -> None:
    """Raises ConfigError for options that contradict each other."""
    fixes = parsed.fix or parsed.fix_only or parsed.diff
    if parsed.exit_non_zero_on_fix and not fixes:
        raise ConfigError("--exit-non-zero-on-fix needs --fix, --fix-only or --diff")
    if parsed.exit_non_zero_on_fix and parsed.exit_zero:
        raise ConfigError("--exit-zero and --exit-non-zero-on-fix exclude each other")
    _exclude(
        {
            "--write-baseline": parsed.write_baseline is not None,
            "--baseline": parsed.baseline is not None,
            "--no-baseline": parsed.no_baseline,
        }
    )
    _exclude(
        {
            "--write-baseline": parsed.write_baseline is not None,
            "--prune-baseline": parsed.prune_baseline,
            "--error-stale": parsed.error_stale,
            "--add-ignore": parsed.add_ignore is not None,
            "--no-baseline": parsed.no_baseline,
            "--watch": parsed.watch,
            "--fix, --fix-only and --diff": fixes,
        }
    )
    _exclude({"--since": parsed.since is not None, "--write-baseline": parsed.write_baseline is not None})
    if parsed.print_completion is not None:
        raise ConfigError("--print-completion stands alone: memlint --print-completion bash")
    of_files = {"--since": parsed.since, "--add-ignore": parsed.add_ignore, "--watch": parsed.watch or None}
    for option, value in of_files.items():
        if value is not None and STDIN in parsed.paths:
            raise ConfigError(f"{option} takes files and folders, not standard input")
    if isinstance(parsed.since, str) and not parsed.paths and os.path.lexists(parsed.since):
        raise ConfigError(
            f"--since: `{parsed.since}` is a path; write `memlint {parsed.since} --since` if that is meant"
        )
    if parsed.error_stale and parsed.exit_zero:
        raise ConfigError("--exit-zero and --error-stale exclude each other")
    silent = "--diff" if parsed.diff else "--fix-only" if parsed.fix_only else None
    reports = {
        "--output-format": parsed.output_format,
        "--output-file": parsed.output_file,
        "--output": parsed.output,
        "--statistics": parsed.statistics,
    }
    for option, value in reports.items():
        if silent is not None and value:
            raise ConfigError(f"{silent} prints no report, so {option} means nothing beside it")
    outputs(parsed)


def _exclude(options: dict[str, bool]) -> None:
    """Raises ConfigError if more than one of these options is given."""
    given = [option for option, is_given in options.items() if is_given]
    if len(given) > 1:
        raise ConfigError(f"{given[0]} cannot be combined with {given[1]}")


def options_of_check(parsed: argparse.Namespace) -> Options:
    """The engine's options by the command line. Raises ConfigError."""
    cwd = Path.cwd()
    if parsed.stdin_filename is not None and STDIN not in parsed.paths:
        raise ConfigError("--stdin-filename needs `-` among the paths")
    baseline = parsed.write_baseline if parsed.baseline is None else parsed.baseline
    return msgspec.structs.replace(
        options_of(parsed, cwd),
        exclude=None if parsed.exclude is None else patterns(cwd, parsed.exclude, "--exclude"),
        extend_exclude=patterns(cwd, parsed.extend_exclude or (), "--extend-exclude"),
        force_exclude=parsed.force_exclude,
        jobs=parsed.jobs,
        executor=_executor(parsed.executor),
        screen=not parsed.no_screen,
        stdin=_stdin(parsed.stdin_filename) if STDIN in parsed.paths else None,
        stdin_filename=parsed.stdin_filename,
        unsafe_fixes=parsed.unsafe_fixes,
        evidence=None if parsed.evidence is None else tuple(cwd / name for name in parsed.evidence),
        cache=not parsed.no_cache,
        baseline=None if baseline is None else cwd / baseline,
        with_baseline=not parsed.no_baseline,
        new_baseline=parsed.write_baseline is not None,
        since=parsed.since,
    )


def _executor(address: str | None) -> str | None:
    """The scheduler of ``dask://HOST:PORT``. Raises ConfigError for another address."""
    if address is not None and not re.fullmatch(r"dask://(\[[0-9a-fA-F:.]+\]|[^\s/:@]+):[0-9]{1,5}", address):
        raise ConfigError(f"--executor: `{address}` is no address of a scheduler; expected dask://HOST:PORT")
    return address


def _stdin(name: str | None) -> bytes:
    if sys.stdin is None:  # the caller closed it
        raise ConfigError("`-` among the paths, but standard input is closed")
    most = most_of(name or "")
    content = sys.stdin.buffer.read(most + 1)
    if len(content) > most:
        raise ConfigError(f"standard input is larger than {most >> 20} MiB, the largest program that is read")
    return content
