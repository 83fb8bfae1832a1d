"""What the rules say of the linted files of one project."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from memlint.config import Config, ConfigError
from memlint.engine.analysis import Analyse, Problem
from memlint.engine.findings import CONFIDENCE, Raw, ask_rules, fingerprinted, internal_error, meta_finding
from memlint.engine.options import Options, Progress
from memlint.engine.prefilter import nothing_to_say
from memlint.engine.rooms import Room, load_rooms
from memlint.engine.selection import ALWAYS, Selection, choose
from memlint.engine.silence import silence
from memlint.engine.suppressions import may_suppress
from memlint.finding import Failure, Finding
from memlint.project import Project


class Ruling(msgspec.Struct, frozen=True):
    """What is asked of a project: its configuration, all rules, and those that run."""

    config: Config
    rooms: Mapping[str, Room]
    selection: Selection


class Linted(msgspec.Struct, frozen=True):
    """What one project's linted files say."""

    findings: tuple[Finding, ...]
    failures: tuple[Failure, ...]
    remarks: tuple[str, ...]


def ruling_of(config: Config, options: Options) -> Ruling:
    """What a configuration and the command line ask for. Raises ConfigError."""
    rooms = load_rooms(config.rule_paths)
    return Ruling(config, rooms, choose(rooms, config, options.overrides))


def says_nothing(project: Project, options: Options) -> bool:
    return options.parsed and options.screen and nothing_to_say(project)


def judge(ruling: Ruling, project: Project, options: Options, progress: Progress, analyse: Analyse) -> Linted:
    """The findings of a project's linted files, without what measurements say of them."""
    config, rooms, selection = ruling.config, ruling.rooms, ruling.selection
    failures = [
        Failure(display, source.unreadable)
        for display in project.linted
        if (source := project.sources[display]).unreadable is not None
    ]
    if len(failures) == len(project.linted) or says_nothing(project, options):
        return Linted((), tuple(failures), ())
    progress("analysing", 0, 0)
    try:
        analysis = analyse(project, enabled=selection.enabled, jobs=options.jobs, screen=options.screen)
    except ConfigError:
        raise
    except Exception as error:  # the last line of defence: the other projects of the run go on
        failures.append(Failure(str(project.root), internal_error("the analysis", error)))
        return Linted((), tuple(failures), ())
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
            project.sources,
            config,
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
    return Linted(tuple(findings), tuple(failures), tuple(analysis.remarks))


def _unparsed(display: str, problem: Problem) -> Raw:
    message = f"This file does not parse: {problem.message}"
    if problem.parses:
        message = f"This was not checked: {problem.message}"
    finding = meta_finding(ALWAYS, display, message, "", problem.line, problem.column, problem.column + 1)
    return Raw(finding, "", problem.message)


def _chosen(raws: Iterable[Raw], selection: Selection) -> list[Finding]:
    """The findings that the user wants to see, at the severity and with the fixes that the configuration gives them."""
    least = CONFIDENCE[selection.min_confidence]
    return [
        msgspec.structs.replace(
            raw.finding,
            severity=selection.severity.get(raw.finding.code, raw.finding.severity),
            fix=raw.finding.fix if raw.finding.code in selection.fixable else None,
            alternatives=raw.finding.alternatives if raw.finding.code in selection.fixable else (),
        )
        for raw in raws
        if CONFIDENCE[raw.finding.confidence] >= least
    ]
