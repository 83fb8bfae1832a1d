"""One body for training and evaluation: a loop over named phases (``for phase in ("train", "val")``), or a
parameter."""

from __future__ import annotations

from memlint.analysis.domain.summary.effects import ModelRun
from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.judge.bounded_places import for_loops
from memlint.analysis.judge.roles import (
    EVALUATION,
    Phase,
    holds,
    leaves_early,
    named_tests,
    puts_into_eval_mode,
    role_of,
)
from memlint.analysis.syntax.bindings import mentions
from memlint.analysis.syntax.expression_text import text
from memlint.analysis.syntax.syntax import walk_expression, walk_statements
from memlint.ir import nodes as ir

#: a list longer than this holds data, not phases
_MOST = 6


def phase_of(summary: Summary, run: ModelRun) -> Phase | None:
    """The phase in which a model runs and records while the backward that reaches it is skipped. Either the function
    puts the model into eval mode in that phase, or the phase's name says so. None if there is no such phase."""
    marks = run.marks
    backwards = [one for one in summary.backwards if marks & one.reached]
    if (
        not backwards
        or run.origin is not None
        or summary.notes.blind_backward
        or summary.notes.blind_calls
        or summary.notes.gradients
    ):
        return None
    escaping = summary.left - summary.notes.logged  # a logger runs no backward
    for loop in for_loops(summary.function.body):
        found = _phases(loop) if ("loop", loop.at) in run.loops and not marks & escaping else None
        if found is None:
            continue
        name, phases = found
        aliases = {alias: test for alias, test in named_tests(loop.body).items() if mentions(test, name)}
        if any(mentions(test, one) for test in run.tests for one in (name, *aliases)):
            continue
        if _is_tested_elsewhere(loop, name, aliases) or leaves_early(loop.body, name, aliases):
            continue
        trained = [
            phase
            for phase in phases
            if any(all(holds(test, name, phase.value, aliases) is not False for test in one.tests) for one in backwards)
        ]
        quiet = [phase for phase in phases if phase not in trained]
        if quiet and trained and all(_evaluates(loop, name, phase, aliases) for phase in quiet):
            return Phase(f"{name} == {text(quiet[0])}", f"{name} == {text(trained[0])}")
    if marks & (escaping | summary.notes.returned):
        return None  # the caller may run the backward
    return role_of(summary, backwards, run)


def _phases(loop: ir.For) -> tuple[str, tuple[ir.Const, ...]] | None:
    """The variable and the literals of a loop over phases; None for another loop."""
    if not isinstance(loop.target, ir.Name) or not isinstance(loop.iter, ir.Display):
        return None
    literals = tuple(one for one in loop.iter.elements if isinstance(one, ir.Const) and isinstance(one.value, str))
    if len(literals) != len(loop.iter.elements) or not 2 <= len(literals) <= _MOST:
        return None
    return loop.target.id, literals


def _is_tested_elsewhere(loop: ir.For, name: str, aliases: dict[str, ir.Expr]) -> bool:
    """Whether the loop stores a comparison of the phase other than as an alias. The tests around a statement then do
    not decide in which phases it runs."""
    return any(
        isinstance(part, ir.Compare) and mentions(part, name)
        for statement in walk_statements(loop.body, into_definitions=False)
        if isinstance(statement, ir.Assign)
        and not (isinstance(target := statement.targets[0], ir.Name) and aliases.get(target.id) is statement.value)
        for part in walk_expression(statement.value)
    )


def _evaluates(loop: ir.For, name: str, phase: ir.Const, aliases: dict[str, ir.Expr]) -> bool:
    """Whether a phase is one of evaluation, by its name or because the loop puts the model into eval mode in it."""
    return EVALUATION.search(str(phase.value).lower()) is not None or puts_into_eval_mode(
        loop.body, name, phase.value, aliases
    )
