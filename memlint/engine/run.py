"""One run: paths in, a `Result` out."""

from __future__ import annotations

import gc
import os.path
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from memlint import config as configuration
from memlint.config import Config, ConfigError
from memlint.engine.analysis import Analyse, Problem, analyse_with_flow
from memlint.engine.findings import CONFIDENCE, Raw, ask_rules, fingerprinted, internal_error, meta_finding
from memlint.engine.options import Options, Progress, no_progress
from memlint.engine.rooms import Room, load_rooms
from memlint.engine.selection import ALWAYS, Selection, choose
from memlint.engine.silence import silence
from memlint.engine.suppressions import may_suppress
from memlint.finding import Failure, Finding, Result, Skipped, Summary
from memlint.project import Discovery, Named, Project, discover, find_root

STDIN = "-"


class Outcome(msgspec.Struct, frozen=True):
    """``said``: skipped files that the user had named. ``notices``: what the user should know of the configuration."""

    result: Result
    said: tuple[Skipped, ...]
    notices: tuple[str, ...]


class _Part(msgspec.Struct, frozen=True):
    """What one project contributes."""

    findings: tuple[Finding, ...]
    failures: tuple[Failure, ...]
    skipped: tuple[Skipped, ...]
    said: tuple[Skipped, ...]
    remarks: tuple[str, ...]
    notices: tuple[str, ...]
    files: int


def run(
    paths: Sequence[str],
    options: Options,
    *,
    progress: Progress = no_progress,
    analyse: Analyse = analyse_with_flow,
) -> Outcome:
    """Lint ``paths`` (files, folders, or ``-`` for standard input), each as part of its project.

    Raises ConfigError where the configuration or the command line is wrong. What is wrong with single files
    or rules is in the result's failures.
    """
    # trees and summaries live as long as the run: looking for cycles in them finds nothing, a quarter of the time
    collects = gc.isenabled()
    gc.disable()
    try:
        return _run(paths, options, progress, analyse)
    finally:
        if collects:
            gc.enable()


def _run(paths: Sequence[str], options: Options, progress: Progress, analyse: Analyse) -> Outcome:
    started = time.perf_counter()
    groups: dict[Path, list[Named]] = {}
    for named in _named(paths, options):
        groups.setdefault(find_root(named.path, options.cwd), []).append(named)
    parts = [_project(root, named, options, progress, analyse) for root, named in sorted(groups.items())]
    findings = tuple(sorted((finding for part in parts for finding in part.findings), key=_place))
    counted = [finding.severity for finding in findings if finding.suppressed is None]
    skipped = tuple(sorted({row for part in parts for row in (*part.skipped, *part.said)}, key=lambda row: row.path))
    result = Result(
        findings=findings,
        failures=tuple(failure for part in parts for failure in part.failures),
        skipped=skipped,
        summary=Summary(
            files=sum(part.files for part in parts),
            skipped=len(skipped),
            errors=counted.count("error"),
            warnings=counted.count("warning"),
            notes=counted.count("note"),
            seconds=round(time.perf_counter() - started, 3),
        ),
        remarks=tuple(remark for part in parts for remark in part.remarks),
    )
    said = tuple(row for part in parts for row in part.said)
    return Outcome(result, said, tuple(dict.fromkeys(notice for part in parts for notice in part.notices)))


def _named(paths: Sequence[str], options: Options) -> Iterable[Named]:
    for path in paths:
        if not path:  # a script whose variable is empty
            raise ConfigError("a path is empty; `.` is the working directory")
        if path == STDIN:
            name = options.stdin_filename or "<stdin>"
            content = options.stdin if options.stdin is not None else sys.stdin.buffer.read()
            yield Named(_absolute(name, options.cwd), content)
        else:
            yield Named(_absolute(path, options.cwd))


def _absolute(path: str, cwd: Path) -> Path:
    """An absolute path without ``.`` and ``..``; symlinks stay, so that messages name what the user named."""
    return Path(os.path.normpath(cwd / path))


def settings(root: Path, options: Options) -> Config:
    """The configuration of the project at ``root``, with the command line's excludes. Raises ConfigError."""
    file = None if options.isolated else options.config or configuration.find(root)
    config = Config() if file is None else configuration.load(file, root)
    exclude = config.exclude if options.exclude is None else (options.exclude,)
    if options.extend_exclude is not None:
        exclude = (*exclude, options.extend_exclude)
    return msgspec.structs.replace(config, exclude=exclude)


def _project(root: Path, named: Sequence[Named], options: Options, progress: Progress, analyse: Analyse) -> _Part:
    config = settings(root, options)
    rooms = load_rooms(config.rule_paths)
    selection = choose(rooms, config, options.overrides)
    progress("finding files", 0, 0)
    found = discover(
        root,
        named,
        cwd=options.cwd,
        excludes=config.exclude,
        force_exclude=options.force_exclude,
        import_roots=config.import_roots,
    )
    raws, failures, remarks = _lint(found.project, rooms, selection, config, options, progress, analyse)
    return _Part(
        findings=tuple(raws),
        failures=(*found.failures, *failures),
        skipped=found.skipped,
        said=found.said,
        remarks=remarks,
        notices=selection.notices,
        files=len(found.project.linted) - len(_unreadable(found)),
    )


def _unreadable(found: Discovery) -> list[str]:
    return [display for display in found.project.linted if found.project.sources[display].unreadable is not None]


def _lint(
    project: Project,
    rooms: Mapping[str, Room],
    selection: Selection,
    config: Config,
    options: Options,
    progress: Progress,
    analyse: Analyse,
) -> tuple[list[Finding], list[Failure], tuple[str, ...]]:
    """The findings of one project's linted files."""
    failures = [
        Failure(display, source.unreadable)
        for display in project.linted
        if (source := project.sources[display]).unreadable is not None
    ]
    if len(failures) == len(project.linted):
        return [], failures, ()
    progress("analysing", 0, 0)
    try:
        analysis = analyse(project, enabled=selection.enabled, jobs=options.jobs, screen=options.screen)
    except ConfigError:
        raise
    except Exception as error:  # the last line of defence: the other projects of the run go on
        failures.append(Failure(str(project.root), internal_error("the analysis", error)))
        return [], failures, ()
    for (display, qualified), mistake in analysis.errors.items():
        failures.append(Failure(display, internal_error(f"the analysis of {qualified}", mistake)))
    findings: list[Finding] = []
    broken: dict[str, list[Raw]] = {}
    for display, problem in analysis.failures:
        broken.setdefault(display, []).append(_unparsed(display, problem))
    unreadable = {display for display in project.linted if project.sources[display].unreadable is not None}
    for done, display in enumerate(project.linted):
        progress("asking the rules", done, len(project.linted))
        if display in unreadable:
            continue
        raws, problems = ask_rules(
            display,
            analysis.events.get(display, ()),
            rooms,
            selection.enabled,
            analysis,
            config.device_memory,
            # a comment may suppress what is not shown, and is then not unused
            "low" if may_suppress(project.sources[display].text) else selection.min_confidence,
        )
        failures += problems
        raws += broken.get(display, [])
        ran = selection.enabled - selection.ignored_in(project.path(display))
        raws = [raw for raw in raws if raw.finding.code in ran]
        whole = display not in broken and not problems
        raws = silence(display, project.sources[display].text, raws, rooms, ran, whole)
        findings += _chosen(fingerprinted(raws, project.relative), selection)
    return findings, failures, tuple(analysis.remarks)


def _unparsed(display: str, problem: Problem) -> Raw:
    message = f"This file does not parse: {problem.message}"
    if problem.parses:
        message = f"This was not checked: {problem.message}"
    finding = meta_finding(ALWAYS, display, message, "", problem.line, problem.column, problem.column + 1)
    return Raw(finding, "", problem.message)


def _chosen(raws: Iterable[Raw], selection: Selection) -> list[Finding]:
    """The findings that the user wants to see, at the severity that the configuration gives them."""
    least = CONFIDENCE[selection.min_confidence]
    return [
        msgspec.structs.replace(raw.finding, severity=selection.severity.get(raw.finding.code, raw.finding.severity))
        for raw in raws
        if CONFIDENCE[raw.finding.confidence] >= least
    ]


def _place(finding: Finding) -> tuple[str, int, int, str]:
    return finding.path, finding.line, finding.column, finding.code
