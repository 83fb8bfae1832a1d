"""From rules' reports to findings: positions resolved, one per code and position, in order."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from memlint.analysis.domain.events import Event, Reached, Step
from memlint.config import Config
from memlint.engine.analysis import Analysis
from memlint.engine.fingerprint import Fingerprints
from memlint.engine.rules.rooms import META_RULES, Room
from memlint.finding import Confidence, Failure, Finding, Growth, Statement, TraceStep
from memlint.fix.render import render
from memlint.project import Source
from memlint.sdk import Facts, Report
from memlint.wording import fitted

CONFIDENCE: dict[Confidence, int] = {"low": 0, "medium": 1, "high": 2}
NO_GROWTH = Growth("none", "once")


class Raw(msgspec.Struct, frozen=True):
    """A finding before its fingerprint, with the source of the statement around it, and its first and last line (None:
    those of the finding)."""

    finding: Finding
    function: str
    statement: str
    lines: tuple[int, int] | None = None


def ask_rules(
    display: str,
    events: tuple[Event, ...],
    rooms: Mapping[str, Room],
    enabled: frozenset[str],
    analysis: Analysis,
    sources: Mapping[str, Source],
    config: Config,
) -> tuple[list[Raw], list[Failure]]:
    """The reports of the enabled rules on one file. A rule that raises is a failure; the others go on."""
    facts = Facts(events, config.device_memory, config.scalar_fix)
    found: dict[tuple[str, int, int], Raw] = {}
    failures: list[Failure] = []
    for code, room in rooms.items():
        if code not in enabled:
            continue
        if (display, code) in analysis.failed:
            failures.append(Failure(display, internal_error(f"the rule {code}", analysis.failed[display, code])))
        try:
            reports = [report for report in room.check(facts) if report.site.path == display]
        except (Exception, SystemExit) as error:  # a rule is a program, and may fail in any way
            failures.append(Failure(display, internal_error(f"the rule {code}", error)))
            continue
        for report in reports:
            try:
                _keep_best(found, _raw(room, report, analysis, sources))
            except Exception as error:  # for an invalid site
                failures.append(Failure(display, internal_error(f"the rule {code}", error)))
    return list(found.values()), failures


def _keep_best(found: dict[tuple[str, int, int], Raw], raw: Raw) -> None:
    """Keep one finding per code and position: the most certain one."""
    key = (raw.finding.code, raw.finding.line, raw.finding.column)
    other = found.get(key)
    if other is None or CONFIDENCE[other.finding.confidence] < CONFIDENCE[raw.finding.confidence]:
        found[key] = raw


def _raw(room: Room, report: Report, analysis: Analysis, sources: Mapping[str, Source]) -> Raw:
    span = analysis.span(report.site)
    reached = _reach(report, analysis)
    why = ""
    if room.meta.of_grad_mode and report.severity != "note" and reached.reach != "cannot-run":
        why = analysis.dated(report.site.path)
    trace = report.trace
    if why:
        trace = (*trace, Step(report.site, why))
    if reached.reach != "used":
        trace = (*trace, Step(reached.site, reached.reason))
    finding = Finding(
        code=room.meta.code,
        name=room.meta.name,
        severity="note" if why else report.severity,
        confidence=report.confidence,
        message=fitted(report.message),
        help=report.help,
        path=report.site.path,
        line=span.line,
        column=span.column,
        end_line=span.end_line,
        end_column=span.end_column,
        growth=report.growth,
        reach=reached.reach,
        reach_reason=reached.reason,
        trace=tuple(_step(step, analysis) for step in trace),
        fix=None if report.fix is None else render(report.fix, analysis, sources),
        alternatives=tuple(
            msgspec.structs.replace(shown, safety="display")
            for plan in report.alternatives
            if (shown := render(plan, analysis, sources)) is not None
        ),
    )
    around, source = analysis.statement(report.site)
    return Raw(finding, analysis.qualified_name(report.site), source, (around.line, around.end_line))


def _reach(report: Report, analysis: Analysis) -> Reached:
    """Whether the code of a finding is used and can run, for it and for any position that it depends on."""
    own = analysis.reach(report.site)
    if own.reach == "used":
        for step in report.trace:
            ways = [analysis.reach(site) for site in (step.site, *step.decides)] if step.decides is not None else []
            if ways and all(way.reach != "used" for way in ways):
                return next((way for way in ways if way.reach == "unused"), ways[0])
    return own


def _step(step: Step, analysis: Analysis) -> TraceStep:
    span = analysis.span(step.site)
    return TraceStep(step.site.path, span.line, span.column, step.message)


def meta_finding(
    code: str, display: str, message: str, advice: str, line: int, column: int, end_column: int
) -> Finding:
    """A finding of the engine itself: on a file that does not parse, or on a suppression."""
    meta = next(meta for meta in META_RULES if meta.code == code)
    return Finding(
        code=code,
        name=meta.name,
        severity=meta.severity,
        confidence="high",
        message=fitted(message),
        help=advice,
        path=display,
        line=line,
        column=column,
        end_line=line,
        end_column=end_column,
        growth=NO_GROWTH,
    )


def fingerprinted(raws: list[Raw], relative: Callable[[str], str]) -> list[Raw]:
    """The findings of one file in order of place and code, each with its fingerprint."""
    fingerprints = Fingerprints()
    ordered = sorted(raws, key=lambda raw: (raw.finding.line, raw.finding.column, raw.finding.code))
    return [msgspec.structs.replace(raw, finding=_recognised(raw, fingerprints, relative)) for raw in ordered]


def _recognised(raw: Raw, fingerprints: Fingerprints, relative: Callable[[str], str]) -> Finding:
    finding = raw.finding
    first, last = raw.lines or (finding.line, finding.end_line)
    anywhere = fingerprints.anywhere(finding.code, raw.function, raw.statement)
    return msgspec.structs.replace(
        finding,
        fingerprint=fingerprints.of(finding.code, relative(finding.path), raw.function, raw.statement),
        statement=Statement(raw.function, first, last, anywhere),
    )


def internal_error(where: str, error: Exception | SystemExit) -> str:
    """One line for a failure: what failed, how, and the innermost place (of memlint, not of the linted code)."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    return f"internal error in {where}: {type(error).__name__}: {error}{place}; please report it"
