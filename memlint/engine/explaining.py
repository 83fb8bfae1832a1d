"""Why rules report, or do not report, a finding on one line of a file."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from typing import TypeVar

import msgspec

from memlint.amounts import plural
from memlint.analysis import Analysis, AnalysisOptions, analyse
from memlint.analysis.domain.detector import Detector
from memlint.analysis.domain.events import CandidateKind, Event
from memlint.analysis.judge.reasons import Judged
from memlint.config import ConfigError
from memlint.engine.cells import in_cells
from memlint.engine.comments.silence import silence
from memlint.engine.findings import CONFIDENCE, Raw, ask_rules, fingerprinted
from memlint.engine.judging import Linted
from memlint.engine.options import Options, Progress, no_progress
from memlint.engine.prepared import Prepared
from memlint.engine.rules.rooms import META_RULES, Room, detectors_of
from memlint.engine.rules.selection import find_room
from memlint.engine.run import absolute, prepare
from memlint.explain.line import LineWatch
from memlint.explanation import Explanation, RuleFacts, StatementFacts, Status, ValueFacts, Why
from memlint.finding import Finding
from memlint.fix.safety import places
from memlint.patterns import NEWLINE
from memlint.project import Project, Source, is_notebook
from memlint.sdk import silent

#: the kinds of a judged candidate, by how it was judged; "" for any other way
_KINDS: dict[tuple[str, str], tuple[CandidateKind, ...]] = {
    ("retain", ""): ("retain", "tensor"),
    ("carry", "add"): ("add", "carry"),
    ("carry", ""): ("carry",),
    ("cat", ""): ("cat",),
    ("run", ""): ("run",),
}


#: records with a line and a column
Place = TypeVar("Place", StatementFacts, ValueFacts)
#: the most files that are searched for callers
MAX_CALLERS = 20


class Asked(msgspec.Struct, frozen=True):
    """A line of a file, or of a cell of a notebook, and the queried rule (code or name); None for all that report or
    drop something."""

    path: str
    line: int
    column: int | None = None
    rule: str | None = None
    cell: int | None = None


def explain(asked: Asked, options: Options) -> Explanation:
    """The facts about a line. Raises ConfigError if there is no such line, file or rule."""
    path = absolute(asked.path, options.cwd)
    if not path.is_file():
        raise ConfigError(f"there is no file {asked.path}" if not path.exists() else f"{asked.path} is no file")
    prepared = next(iter(prepare([asked.path], options, no_progress)))
    return explain_in(asked, prepared, prepared.found.project, no_progress)


def explain_in(asked: Asked, prepared: Prepared, project: Project, progress: Progress) -> Explanation:
    """The facts about a line of the linted file of a project. Raises ConfigError."""
    room = None if asked.rule is None else find_room(prepared.rooms, asked.rule)
    if not project.linted:
        skipped = next((row.reason for row in prepared.found.skipped), "it is not Python")
        raise ConfigError(f"{asked.path} cannot be explained: {skipped}")
    display = project.linted[0]
    source = project.sources[display]
    if source.unreadable is not None:
        raise ConfigError(f"{display} cannot be read: {source.unreadable}")
    asked = _in_module(asked, source)
    line = _lines(source.original)[asked.line - 1]
    return _in_cell(_explained(asked, prepared, project, progress, room, line.rstrip("\n")), source, asked)


def _lines(text: str) -> list[str]:
    return list(io.StringIO(text, newline=None))


def _in_module(asked: Asked, source: Source) -> Asked:
    """The query with the line of the module. Raises ConfigError if there is none."""
    if source.foreign:
        raise ConfigError(f"{source.display} cannot be explained: it is a notebook in {source.foreign}")
    if asked.cell is None and source.cells:
        raise ConfigError(f"{source.display} is a notebook: name the cell, for example {source.display}:cell 1:1")
    if asked.cell is not None:
        return _of_cell(asked, source)
    count = len(_lines(source.text))
    if not 0 < asked.line <= count:
        raise ConfigError(f"{source.display} has {count} lines, so there is no line {asked.line}")
    return asked


def _of_cell(asked: Asked, source: Source) -> Asked:
    cell = next((cell for cell in source.cells if cell.number == asked.cell), None)
    if cell is None:
        why = "has no code cell" if source.cells or is_notebook(source.path) else "is no notebook, and has no cell"
        raise ConfigError(f"{source.display} {why} {asked.cell}")
    problem = next((one for one in source.problems if source.cell(one.line) == cell and not one.parses), None)
    if problem is not None:
        line = problem.line - cell.line + 1
        raise ConfigError(f"cell {asked.cell} of {source.display} does not parse: line {line}: {problem.message}")
    count = len(_lines(source.text[cell.start : cell.end]))
    if not 0 < asked.line <= count:
        lines = plural(count, "line")
        raise ConfigError(f"cell {asked.cell} of {source.display} has {lines}, so there is no line {asked.line}")
    column = None if asked.column is None else max(asked.column - cell.indent, 1)
    return msgspec.structs.replace(asked, line=asked.line + cell.line - 1, column=column)


def _in_cell(found: Explanation, source: Source, asked: Asked) -> Explanation:
    """An explanation with lines that count from the queried cell."""
    cell = source.cell(asked.line)
    if cell is None:
        return found
    above, left = cell.line - 1, cell.indent

    def moved(one: Place) -> Place:
        return msgspec.structs.replace(one, line=one.line - above, column=one.column + left)

    statements = tuple(
        msgspec.structs.replace(moved(one), values=tuple(map(moved, one.values))) for one in found.statements
    )
    column = None if found.column is None else found.column + left
    return msgspec.structs.replace(
        found, cell=cell.number, line=found.line - above, column=column, statements=statements
    )


def _explained(
    asked: Asked, prepared: Prepared, project: Project, progress: Progress, room: Room | None, source: str
) -> Explanation:
    display = project.linted[0]
    detectors = detectors_of(prepared.rooms, prepared.rooms.keys())
    watch, analysis = _analysed(asked, project, display, detectors, progress)
    callers = sorted(watch.callers - {display})
    if 0 < len(callers) <= MAX_CALLERS:
        # a run that lints this file alone does not search its callers; here they matter
        analysis.close()
        project = project.part((display, *callers))
        watch, analysis = _analysed(asked, project, display, detectors, progress)
    codes = frozenset(prepared.rooms)
    raws: list[Raw] = []
    failures: list[str] = []
    for one in project.linted:
        events = analysis.events.get(one, ())
        found, problems = ask_rules(one, events, prepared.rooms, codes, analysis, project.sources, prepared.config)
        raws += silence(project.sources[one], found, prepared.rooms, codes, False)
        failures += (failure.reason for failure in problems)
    lines = {number for one in watch.statements for number in range(one.line, one.line + one.source.count("\n") + 1)}
    places = {project.sources[display].shown(number) for number in lines}
    here = [event for event in analysis.events.get(display, ()) if analysis.span(event.site).line in lines]
    findings = _judged(prepared, project, raws)
    own = [one for one in findings if one.path == display and (one.cell, one.line) in places]
    elsewhere = [
        one
        for one in findings
        if one not in own and any(step.path == display and (step.cell, step.line) in places for step in one.trace)
    ]
    failures += (f"{name or one}: {error}" for (one, name), error in analysis.errors.items())
    said = _Said(prepared, watch, here, own, elsewhere)
    explanation = Explanation(
        path=display,
        line=asked.line,
        column=asked.column,
        source=source,
        statements=tuple(watch.statements),
        rules=tuple(said.rules(room)),
        failures=tuple(failures),
    )
    analysis.close()
    return explanation


def _analysed(
    asked: Asked, project: Project, display: str, detectors: tuple[Detector, ...], progress: Progress
) -> tuple[LineWatch, Analysis]:
    """The facts about the line. Raises ConfigError if the file does not parse, or the line has no code."""
    watch = LineWatch(display, asked.line, asked.column)
    options = AnalysisOptions(fixes=places, screen=False, detectors=detectors, observer=watch, progress=progress)
    analysis = analyse(project, options)
    for path, problem in analysis.failures:
        if path == display:
            raise ConfigError(f"{display} does not parse: line {problem.line}: {problem.message}")
    if not watch.statements:
        cell, line = project.sources[display].shown(asked.line)
        where = f"line {line} of {display}" if cell is None else f"line {line} of cell {cell} of {display}"
        if _is_masked(project.sources[display], asked.line):
            raise ConfigError(f"{where} is run by IPython alone, and is not analysed")
        raise ConfigError(f"there is no code on {where}")
    return watch, analysis


def _seeks(room: Room) -> str:
    meta = room.meta
    said = f"{meta.code} looks for {room.seeks}" if room.seeks else f"{meta.code} reports this: {meta.summary}"
    return said.rstrip(".")


def _is_masked(source: Source, number: int) -> bool:
    """Whether a line of the text replaces one for IPython alone."""
    starts = [0, *(match.end() for match in NEWLINE.finditer(source.text)), len(source.text)]
    start, end = starts[number - 1], starts[number]
    return any(start <= mask.start < end for mask in source.masks)


def _judged(prepared: Prepared, project: Project, raws: Sequence[Raw]) -> tuple[Finding, ...]:
    """The findings after the baseline and evidence are applied."""
    fingerprints = fingerprinted(list(raws), project.relative)
    findings = tuple(in_cells(raw.finding, project.sources) for raw in fingerprints)
    findings = tuple(prepared.proof.applied(findings, project)[0])
    linted = Linted(findings, (), ())
    if prepared.baseline is not None:
        linted = prepared.baseline.applied(linted, project, prepared, prepared.folders)
    return linted.findings


class _Said:
    """The facts about each rule for the line."""

    def __init__(
        self,
        prepared: Prepared,
        watch: LineWatch,
        events: Sequence[Event],
        own: Sequence[Finding],
        elsewhere: Sequence[Finding],
    ) -> None:
        self._prepared = prepared
        self._watch = watch
        self._events = events
        self._own, self._elsewhere = own, elsewhere

    def rules(self, room: Room | None) -> Iterator[RuleFacts]:
        """For one rule, or for all that have a finding or a dropped candidate."""
        rooms = [room] if room is not None else list(self._prepared.rooms.values())
        for one in rooms:
            own = [finding for finding in self._own if finding.code == one.meta.code]
            others = [finding for finding in self._elsewhere if finding.code == one.meta.code]
            for finding in own:
                yield self._found(one, finding)
            for finding in others:
                yield self._facts(one, "elsewhere", list(self._hidden(finding)), finding)
            if not own and not others:
                dropped = list(self._dropped(one))
                if dropped:
                    yield self._facts(one, "dropped", dropped)
                elif room is not None:
                    left = list(self._left(one))
                    yield (
                        self._facts(one, "dropped", left)
                        if left
                        else self._facts(one, "no candidate", list(self._missing(one)))
                    )

    @staticmethod
    def _facts(room: Room, status: Status, reasons: list[Why], finding: Finding | None = None) -> RuleFacts:
        meta = room.meta
        return RuleFacts(code=meta.code, name=meta.name, status=status, reasons=tuple(reasons), finding=finding)

    def _found(self, room: Room, finding: Finding) -> RuleFacts:
        hidden = list(self._hidden(finding))
        doubts = [self._why(one) for one in self._reasons(room) if one.effect == "low"]
        # a store may be judged in several functions; the most certain one is reported
        reasons = [*hidden, *(doubts if finding.confidence == "low" else ())]
        return self._facts(room, "not shown" if hidden else "reported", reasons, finding)

    def _hidden(self, finding: Finding) -> Iterator[Why]:
        """Why `memlint check` does not show a finding."""
        selection, code = self._prepared.selection, finding.code
        least = selection.min_confidence
        if code in selection.preview:
            yield Why("preview", "this is a preview rule, which runs with `--preview` only")
        elif code not in selection.enabled:
            yield Why("not-selected", "the configuration or the command line does not select this rule")
        if code in selection.ignored_in(self._prepared.found.project.path(finding.path)):
            yield Why("per-file-ignores", "`per-file-ignores` in the configuration drops this rule in this file")
        if CONFIDENCE[finding.confidence] < CONFIDENCE[least]:
            yield Why(
                "below-confidence",
                f"its confidence is {finding.confidence}, and findings of at least {least} confidence are shown: "
                f"`--min-confidence {finding.confidence}` shows it",
            )
        if finding.suppressed is not None:
            reason = f": {finding.suppressed.reason}" if finding.suppressed.reason else ""
            by = {"baseline": "the baseline", "evidence": "a measurement"}.get(
                finding.suppressed.by, f"a comment ({finding.suppressed.by})"
            )
            yield Why("suppressed", f"{by} suppresses it{reason}")
        if finding.reach == "unused" and self._prepared.config.unused_code == "ignore":
            yield Why("unused-code", f"the configuration ignores unused code: {finding.reach_reason}")

    def _reasons(self, room: Room) -> Iterator[Judged]:
        for one in self._watch.reasons:
            kind, how = one.what
            if not room.candidates.isdisjoint(_KINDS.get((kind, how), _KINDS.get((kind, ""), ()))):
                yield one

    @staticmethod
    def _why(one: Judged) -> Why:
        return Why(one.name, one.text if one.effect == "dropped" else f"low confidence: {one.text}")

    def _dropped(self, room: Room) -> Iterator[Why]:
        """The rule's own reasons for dropped events, and those of the engine, each once."""
        seen: set[Why] = set()
        for event in self._events:
            reason = silent(event, room.silent)
            if reason is not None and reason.name:
                seen.add(Why(reason.name, reason.text.format(event=event)))
        if not seen:
            seen = {self._why(one) for one in self._reasons(room) if one.effect == "dropped"}
        yield from sorted(seen, key=lambda why: why.name)

    def _left(self, room: Room) -> Iterator[Why]:
        """The queries about the line, if the analysis has no event on it for the rule."""
        asked = self._watch.asked.get(room.meta.code)
        if asked is not None:
            yield Why("left", f"{_seeks(room)}; asked of this line: {asked}")

    def _missing(self, room: Room) -> Iterator[Why]:
        """The conditions of the rule, and which of them are not met."""
        meta = room.meta
        if meta.code in {one.code for one in META_RULES}:
            yield Why(
                "of-the-file", f"{meta.code} is about files and comments, not about what code does: {meta.summary}"
            )
            return
        said = _seeks(room)
        lacks = next((said for kind, said in self._watch.absent.items() if kind in room.candidates), None)
        if lacks:
            yield Why("no-candidate", f"{said}; {lacks}")
        else:
            page = f"`memlint rule {meta.code}` shows code that it reports, and code that it does not"
            nothing = f"the analysis found nothing of that kind on this line ({page})"
            yield Why("no-candidate", f"{said}; {nothing}")
        if room.closed:
            yield Why("not-loaded", "this is a rule of the project, which runs with `--local-rules` only")
