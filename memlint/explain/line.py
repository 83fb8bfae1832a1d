"""The facts about one line after the analysis."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from memlint.analysis.domain.events import CandidateKind, Site
from memlint.analysis.domain.state import State
from memlint.analysis.domain.summary.effects import ModelRun
from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.domain.values import CALLABLE, MODULE, NONE, UNKNOWN, V
from memlint.analysis.facts.module_facts import context_mode
from memlint.analysis.judge.reasons import Judged
from memlint.analysis.syntax.expression_text import text
from memlint.analysis.transfer.modules.modes import frozen_of
from memlint.explain.absent import absent
from memlint.explain.asked import asked
from memlint.explain.lines import Found, statements_on
from memlint.explain.modes import grad_mode, is_header, loops
from memlint.explain.watch import Recording, recorded
from memlint.explain.words import Words
from memlint.explanation import StatementFacts, ValueFacts
from memlint.ir import nodes as ir

if TYPE_CHECKING:
    from memlint.analysis.driver.run import Analysis
    from memlint.analysis.facts.analyser import Analyser

#: the most values of one statement that are shown
_MOST = 40


class LineWatch:
    """Observes the analysis of one line of a file. ``statements``: the facts about its statements; ``reasons``: the
    decisions about candidates there; ``absent``: by kind, what the line lacks for a candidate; ``asked``: by rule, the
    question at which its detection dropped the line."""

    def __init__(self, path: str, line: int, column: int | None) -> None:
        self.path, self.line, self.column = path, line, column
        self.statements: list[StatementFacts] = []
        self.reasons: list[Judged] = []
        self.absent: dict[CandidateKind, str] = {}
        self.asked: dict[str, str] = {}
        #: files that may call a function on the line which has no known caller
        self.callers: set[str] = set()
        self._judged: list[Judged] = []

    def judged(self, one: Judged) -> None:
        if one.site.path == self.path:
            self._judged.append(one)

    def finish(self, analysis: Analysis) -> None:
        """Collect the facts about the statements on the line."""
        found = statements_on(analysis, self.path, self.line, self.column)
        for one in found:
            summary, recording = _recorded(analysis.analyser, one)
            about = _About(analysis, summary, recording, one)
            facts = about.facts()
            self.statements.append(facts)
            if one.function.node is not None and not analysis.analyser.facts.calls_of(one.function):
                self.callers.update(analysis.analyser.program.words.files(one.function.name))
            ordinals = {one.statement.at, *(part.at for part, _ in one.parts)}
            for code, said in asked(analysis.analyser, summary, ordinals).items():
                self.asked.setdefault(code, said)
            for kind, said in absent(summary, recording, one.statement, facts).items():
                self.absent.setdefault(kind, said)
        spans = [(one.function.unit, one.span) for one in found]
        for judged in self._judged:
            span = analysis.span(judged.site)
            if any(inside.line <= span.line <= inside.end_line for _, inside in spans) and judged not in self.reasons:
                self.reasons.append(judged)


def _recorded(analyser: Analyser, one: Found) -> tuple[Summary, Recording]:
    parts = {part.at for part, _ in one.parts}
    # receivers of methods and added values matter too
    for part, _ in one.parts:
        if isinstance(part, ir.Call):
            parts.add(part.func.at)
    value = getattr(one.statement, "value", None)
    if value is not None:
        parts.add(value.at)
    return recorded(analyser, one.function, {one.statement.at}, parts)


class _Places:
    """Positions as users count them, relative to a file."""

    def __init__(self, analysis: Analysis, path: str) -> None:
        self._analysis, self._path = analysis, path
        self._sources = analysis.analyser.program.project.sources

    def shown(self, site: Site) -> tuple[int | None, int]:
        found: tuple[int | None, int] = self._sources[site.path].shown(self._analysis.span(site).line)
        return found

    def words(self, site: Site) -> str:
        cell, line = self.shown(site)
        if site.path != self._path:
            return f"{site.path}:{line}" if cell is None else f"{site.path}:cell {cell}:{line}"
        return f"line {line}" if cell is None else f"cell {cell}, line {line}"


class _About:
    def __init__(self, analysis: Analysis, summary: Summary, recording: Recording, found: Found) -> None:
        self._analysis, self._analyser = analysis, analysis.analyser
        self._summary, self._recording, self._found = summary, recording, found
        self._places = _Places(analysis, summary.module.key)
        self._words = Words(self._analyser, summary, self._places)

    def facts(self) -> StatementFacts:
        statement, function, span, _ = self._found
        mode, decided = grad_mode(self._analyser, self._summary, self._recording, statement, self._places.words)
        return StatementFacts(
            source=self._analysis.statement(self._summary.site(statement.at))[1],
            function=function.qual,
            line=span.line,
            column=span.column,
            reached=statement.at in self._recording.before or is_header(statement),
            grad_mode=mode,
            decided_by=decided,
            loops=tuple(loops(self._analyser, self._summary, self._recording, statement, self._places.words)),
            values=tuple(self._values())[:_MOST],
            notes=tuple(self._notes()),
        )

    def _notes(self) -> Iterator[str]:
        summary, statement = self._summary, self._found.statement
        if statement.at not in self._recording.before and not is_header(statement):
            if summary.cut_short:
                yield f"`{summary.function.name}` is too much to follow, so its analysis was cut short before this line"
            else:
                yield "the code before it always leaves, or a test that never holds leaves it out"
        if isinstance(statement, ir.FunctionDef | ir.ClassDef):
            yield "a definition: explain a line of its body to see what happens there"

    # ------------------------------------------------------------------------------------ values

    def _values(self) -> Iterator[ValueFacts]:
        statement = self._found.statement
        before = self._recording.before.get(statement.at)
        if before is None:
            return
        after = self._recording.after.get(statement.at)
        targets = {target.at for target in _targets(statement)}
        called = {part.func.at: part for part, _ in self._found.parts if isinstance(part, ir.Call)}
        seen: set[str] = set()
        for part, span in self._found.parts:
            is_target = part.at in targets
            value = self._assigned(part, after) if is_target else self._recording.values.get(part.at)
            shown = text(part, 200)
            if value is None or not value.kinds or shown in seen:
                continue
            if isinstance(part, ir.Call) and value.is_only(NONE):
                continue  # ``items.append(x)`` has no value
            if part.at in called and not value.kinds & (MODULE | UNKNOWN):
                continue  # a callee is shown only if it is unresolved
            if not isinstance(part, ir.Call) and value.is_only(CALLABLE) and value.resolved():
                continue
            seen.add(shown)
            state = (after if is_target and after is not None else before) or State()
            place = (span.line, span.column)
            yield self._words.facts(
                part, place, value, state, self._mode_of(part, value, state), self._unknown(part, value)
            )

    def _assigned(self, target: ir.Expr, after: State | None) -> V | None:
        """The value of a variable after the statement; of another target, the evaluated value."""
        if isinstance(target, ir.Name) and after is not None and target.id in after.env:
            return after.env[target.id]
        return self._recording.values.get(target.at)

    def _unknown(self, part: ir.Expr, value: V) -> str:
        """What would resolve a call with an unknown callee."""
        if not isinstance(part, ir.Call):
            return ""
        func = self._recording.values.get(part.func.at)
        if func is None or not func.kinds & UNKNOWN or func.resolved() or not value.kinds & UNKNOWN:
            return ""
        return (
            f"`{text(part.func)}` is unresolved, so what the call does and returns is unknown: a definition in the "
            f"project, or an annotation of `{text(part.func).partition('.')[0]}`, would tell"
        )

    def _mode_of(self, part: ir.Expr, value: V, state: State) -> str:
        """The mode of a model that runs in a call, or of the module that a name is."""
        summary = self._summary
        if isinstance(part, ir.Call):
            run = next((run for run in summary.runs.values() if run.site.at == part.at), None)
            return f"given by a model run ({self._said(run)})" if run is not None else ""
        if not value.is_only(MODULE):
            return ""
        frozen = frozen_of(summary, state, value, part)
        return "frozen" if frozen else ""

    def _said(self, run: ModelRun) -> str:
        mode = run.mode
        if mode is None:
            mode = context_mode(self._analyser, self._summary, run.module, "")
        said = {True: "in eval mode", False: "in train mode", None: "whether in eval or train mode is unknown"}[mode]
        if context_mode(self._analyser, self._summary, run.module, "frozen") is True:
            said += ", frozen"
        return f"`{run.text}` {said}"


def _targets(statement: ir.Stmt) -> Iterator[ir.Expr]:
    """The targets of a statement."""
    if isinstance(statement, ir.Assign):
        todo = list(statement.targets)
    elif isinstance(statement, ir.AugAssign | ir.AnnAssign | ir.For):
        todo = [statement.target]
    else:
        return
    while todo:
        target = todo.pop()
        if isinstance(target, ir.Display):
            todo += target.elements
        elif isinstance(target, ir.Starred):
            todo.append(target.value)
        else:
            yield target
