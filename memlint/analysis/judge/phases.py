"""One body for training and evaluation: a loop over named phases (``for phase in ("train", "val")``), or a
parameter."""

from __future__ import annotations

from typing import NamedTuple

from memlint.analysis.domain.summary.effects import ModelRun
from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.judge.roles import EVALUATION, role_of
from memlint.analysis.syntax.bindings import mentions, names_bound_by
from memlint.analysis.syntax.expression_text import text
from memlint.analysis.syntax.memo import kept
from memlint.analysis.syntax.syntax import walk_expression, walk_statements
from memlint.analysis.transfer.modules.flags import test_value
from memlint.ir import nodes as ir

#: a list longer than this holds data, not phases
_MOST = 6


class Phase(NamedTuple):
    """A phase without training. ``quiet``: a test, as source, of the iterations without a backward; ``training``: one
    of those with a backward."""

    quiet: str
    training: str


def phase_of(summary: Summary, run: ModelRun) -> Phase | None:
    """The phase in which a model runs and records while the backward that reaches it is skipped. Either the function
    puts the model into eval mode in that phase, or the phase's name says so. None if there is no such phase."""
    marks = {run.node, *run.value.src}
    backwards = [one for one in summary.backwards if marks & one.reached]
    if (
        not backwards
        or run.origin is not None
        or summary.notes.blind_backward
        or summary.notes.blind_calls
        or summary.notes.gradients
    ):
        return None
    left = summary.left - summary.notes.logged  # a logger runs no backward
    for statement in _loops(summary.function.body):
        names = _phases(statement) if ("loop", statement.at) in run.loops else None
        if names is None:
            continue
        asked = _Asked(names[0].id, _aliases(statement, names[0].id))
        if any(mentions(test, name) for test in run.tests for name in (asked.name, *asked.aliases)):
            continue
        if _told_otherwise(statement, asked) or marks & left:
            continue
        name, phases = names
        trained = [phase for phase in phases if any(_may_run(one.tests, asked, phase.value) for one in backwards)]
        quiet = [phase for phase in phases if phase not in trained]
        if quiet and trained and all(_evaluates(statement, asked, phase) for phase in quiet):
            return Phase(f"{name.id} == {text(quiet[0])}", f"{name.id} == {text(trained[0])}")
    if marks & (left | summary.notes.returned):
        return None  # the caller may run the backward
    role = role_of(summary, backwards, run)
    return Phase(role.quiet, role.training) if role is not None else None


@kept
def _loops(body: tuple[ir.Stmt, ...]) -> tuple[ir.For, ...]:
    return tuple(one for one in walk_statements(body, into_definitions=False) if isinstance(one, ir.For))


def _phases(loop: ir.For) -> tuple[ir.Name, tuple[ir.Const, ...]] | None:
    """The variable and the literals of a loop over phases; None for another loop."""
    if not isinstance(loop.target, ir.Name) or not isinstance(loop.iter, ir.Display):
        return None
    literals = tuple(one for one in loop.iter.elements if isinstance(one, ir.Const) and isinstance(one.value, str))
    if len(literals) != len(loop.iter.elements) or not 2 <= len(literals) <= _MOST:
        return None
    return loop.target, literals


class _Asked(NamedTuple):
    """The variable of a loop over phases, and the names of tests of it: ``training = phase == "train"``."""

    name: str
    aliases: dict[str, ir.Expr]


def _aliases(loop: ir.For, name: str) -> dict[str, ir.Expr]:
    """The names that each iteration assigns a test of its phase, and that nothing else binds, with these tests."""
    bound: dict[str, int] = {}
    found: dict[str, ir.Expr] = {}
    for statement in walk_statements(loop.body, into_definitions=False):
        for one in names_bound_by(statement):
            bound[one] = bound.get(one, 0) + 1
        match statement:
            case ir.Assign(targets=(ir.Name() as target,), value=ir.Compare() | ir.Unary() | ir.BoolOp() as value):
                if statement in loop.body and mentions(value, name):
                    found[target.id] = value
            case _:
                pass
    return {one: value for one, value in found.items() if bound[one] == 1}


def _told_otherwise(loop: ir.For, asked: _Asked) -> bool:
    """Whether the loop stores the phase in another form, or leaves an iteration early in some phase. The tests around a
    statement then do not decide in which phases it runs."""
    for statement in walk_statements(loop.body, into_definitions=False):
        if isinstance(statement, ir.Assign) and any(
            isinstance(part, ir.Compare) and mentions(part, asked.name) for part in walk_expression(statement.value)
        ):
            target = statement.targets[0]
            if not isinstance(target, ir.Name) or asked.aliases.get(target.id) is not statement.value:
                return True
        if isinstance(statement, ir.If) and any(mentions(statement.test, one) for one in (asked.name, *asked.aliases)):
            inner = walk_statements((*statement.body, *statement.orelse), into_definitions=False)
            if any(isinstance(one, ir.Jump | ir.Return) for one in inner):
                return True
    return False


def _may_run(tests: tuple[ir.Expr, ...], asked: _Asked, phase: object) -> bool:
    return all(_holds(test, asked, phase) is not False for test in tests)


def _holds(test: ir.Expr, asked: _Asked, phase: object) -> bool | None:
    """Whether a test holds in a phase; None if it tests something else."""

    def asks(part: ir.Expr) -> bool | None:
        match part:
            case ir.Name(id=alias) if alias in asked.aliases:
                return _holds(asked.aliases[alias], _Asked(asked.name, {}), phase)
            case ir.Compare(left=ir.Name(id=name), ops=("==" | "!=" as op,), rights=(ir.Const(value=value),)):
                return (value == phase) == (op == "==") if name == asked.name else None
            case ir.Compare(left=ir.Name(id=name), ops=("in" | "not in" as op,), rights=(ir.Display() as several,)):
                values = [one.value for one in several.elements if isinstance(one, ir.Const)]
                known = name == asked.name and len(values) == len(several.elements)
                return (phase in values) == (op == "in") if known else None
            case _:
                return None

    return test_value(test, asks)


def _evaluates(loop: ir.For, asked: _Asked, phase: ir.Const) -> bool:
    """Whether a phase is one of evaluation, by its name or by an ``eval()`` call under a test of it."""
    return EVALUATION.search(str(phase.value).lower()) is not None or any(
        _holds(statement.test, asked, phase.value) is not None and _switches(statement)
        for statement in walk_statements(loop.body, into_definitions=False)
        if isinstance(statement, ir.If)
    )


def _switches(statement: ir.If) -> bool:
    return any(
        isinstance(inner, ir.ExprStmt)
        and isinstance(inner.value, ir.Call)
        and isinstance(inner.value.func, ir.Attr)
        and inner.value.func.name == "eval"
        for inner in (*statement.body, *statement.orelse)
    )
