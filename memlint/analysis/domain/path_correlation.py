"""Path correlation: if a test is evaluated again, each branch continues with the state that the same branch of the
earlier ``if`` left.

A join loses which values belong to which branch. A state keeps them for the tests that the function evaluates more than
once, until something that a test reads is assigned.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Any, NamedTuple

from memlint.analysis.domain.recorded_modes import keep_modes, mode_keys
from memlint.analysis.domain.state import State, untouched
from memlint.analysis.domain.values import Sources, V
from memlint.analysis.index.function import Function
from memlint.analysis.syntax.bindings import binds, names_read, targets
from memlint.analysis.syntax.expression_text import text
from memlint.analysis.syntax.memo import kept
from memlint.analysis.syntax.syntax import dotted, parts_of, walk_expression, walk_statements
from memlint.ir import nodes as ir

if TYPE_CHECKING:
    from memlint.analysis.domain.summary.summary import Summary

#: expressions whose value does not change between two evaluations
_PLAIN = (ir.Name, ir.Attr, ir.Const, ir.Unary, ir.BoolOp, ir.Compare)
#: methods that change ``training``
_SETS_MODE = frozenset({"train", "eval"})
#: a test of this length or more is not compared
_LONGEST = 200
#: ("env", a variable) or ("sym", a symbolic place) of a state
_Place = tuple[str, Any]


class Side(NamedTuple):
    """The end of one branch: the values that differ from the other branch's, and the graphs that it freed on every
    path."""

    places: dict[_Place, V]
    freed: Sources
    met: dict[str, Meeting]


class Meeting(NamedTuple):
    """The join after an ``if``: its ordinal, the graphs' clock there, and the joined state."""

    at: int
    clock: int
    joined: dict[_Place, V]
    yes: Side
    no: Side


@kept
def repeated_tests(function: Function) -> frozenset[str]:
    """The tests, and parts of tests, that a function evaluates more than once."""
    seen: set[str] = set()
    again: set[str] = set()
    for statement in walk_statements(function.body, into_definitions=False):
        if isinstance(statement, ir.If):
            parts = {_shown(part) for part in _parts(statement.test)} - {""}
            again |= parts & seen
            seen |= parts
    return frozenset(again)


def recall(summary: Summary, state: State, test: ir.Expr, truth: bool) -> None:
    """Restore what this branch of an earlier ``if`` with the same test left."""
    match test:
        case ir.Unary(op="not"):
            recall(summary, state, test.operand, not truth)
            return
        case ir.BoolOp() if (test.op == "and") == truth:
            recall(summary, state, test.left, truth)
            recall(summary, state, test.right, truth)
    met: Meeting | None = state.met.get(_shown(test)) if state.met else None
    if met is None or _bound_between(summary.function, test, met.at):
        return
    side = met.yes if truth else met.no
    if not summary.spend(len(met.joined) // 16):
        return
    for (where, name), joined in met.joined.items():
        held: dict[Any, V] = getattr(state, where)
        if held.get(name) is joined:
            held[name] = side.places[where, name]
    since = summary.graphs.made_between(side.freed, met.clock, summary.graphs.clock)
    state.freed_must |= side.freed - since
    state.met = {**state.met, **side.met}


def meet(summary: Summary, statement: ir.If, yes: State | None, no: State | None, joined: State | None) -> None:
    """Record at the end of an ``if`` what each branch left."""
    if yes is None or no is None or joined is None:
        return
    test, sides = statement.test, (yes, no)
    while isinstance(test, ir.Unary) and test.op == "not":
        test, sides = test.operand, (sides[1], sides[0])
    shown = _shown(test)
    if shown not in summary.repeated_tests:
        return
    one, other = sides
    if not summary.spend(len(joined.env) // 16):
        return
    places: list[tuple[str, Any]] = [
        ("env", name)
        for name, value in joined.env.items()
        if name in one.env and name in other.env and not (one.env[name] is value is other.env[name])
    ]
    places += [
        ("sym", path) for path, value in joined.sym.items() if not (one.sym.get(path) is value is other.sym.get(path))
    ]
    ends = [Side({place: _held(side, *place) for place in places}, side.freed_must, side.met) for side in sides]
    kept = {(where, name): getattr(joined, where)[name] for where, name in places}
    joined.met = {**joined.met, shown: Meeting(statement.at, summary.graphs.clock, kept, ends[0], ends[1])}


def switch_of(context: ir.Expr) -> ir.Expr | None:
    """The test of ``with torch.set_grad_enabled(test):``, or of an equivalent guard of the project; None for another
    context manager."""
    if not isinstance(context, ir.Call):
        return None
    arguments = context.passed
    return arguments[0] if len(arguments) == 1 and _shown(arguments[0]) else None


def only_recorded(summary: Summary, statement: ir.If, yes: State | None, no: State | None, joined: State) -> None:
    """If the test of an ``if`` also decides whether a block records, graphs of the block that one branch frees are
    freed in the join: in the other branch they do not exist."""
    test, side = statement.test, yes
    while isinstance(test, ir.Unary) and test.op == "not":
        test, side = test.operand, no if side is yes else yes
    if side is None:
        return
    name = _asked_for_itself(test)
    if name in side.env:  # ``if loss != 0: loss.backward()``: otherwise it is a number
        joined.freed_must |= summary.graphs.closure(side.env[name].src) & side.freed_must
    module = name or _asked_for_module(test)
    if module in side.env:  # None, or a value that is no module, has neither mode nor parameters
        keep_modes(side, joined, frozenset(mode_keys(side.env[module], None)))
    for at, (flag, begin, finish) in summary.recorded_if.items():
        if _shown(test) == _shown(flag) and not _bound_between(summary.function, test, at):
            until = summary.graphs.clock if finish is None else finish
            joined.freed_must |= summary.graphs.made_between(side.freed_must, begin, until)


def _asked_for_itself(test: ir.Expr) -> str:
    """The variable of ``if x:``, ``if x != 0:``, ``if x > 0:`` and ``if x is not None:``; "" for another test."""
    if isinstance(test, ir.Compare) and test.ops in (("!=",), (">",), ("is not",)):
        right = test.rights[0]
        if isinstance(right, ir.Const) and (right.kind == "None" or right.value == 0):
            test = test.left
    return test.id if isinstance(test, ir.Name) else ""


def _asked_for_module(test: ir.Expr) -> str:
    """The variable of ``if isinstance(x, nn.Module):``; "" for another test."""
    if not isinstance(test, ir.Call) or dotted(test.func) != "isinstance" or len(test.args) != 2:
        return ""
    one, kind = test.args
    return one.id if isinstance(one, ir.Name) and dotted(kind).rpartition(".")[2] == "Module" else ""


def _held(state: State, where: str, name: Any) -> V:
    value: V | None = getattr(state, where).get(name)
    return untouched(name) if value is None else value


def _parts(test: ir.Expr) -> list[ir.Expr]:
    """A test with the operands of its ``and``, ``or`` and ``not``."""
    match test:
        case ir.Unary(op="not"):
            return _parts(test.operand)
        case ir.BoolOp():
            return [test, *_parts(test.left), *_parts(test.right)]
        case _:
            return [test]


def _shown(test: ir.Expr) -> str:
    """The key of a test that has the same value whenever it is evaluated; "" for one that may not."""
    if not all(isinstance(part, _PLAIN) for part in walk_expression(test)):
        return ""
    shown = text(test, _LONGEST)
    return shown if len(shown) < _LONGEST else ""


def _bound_between(function: Function, test: ir.Expr, since: int) -> bool:
    """Whether a name that the test reads is assigned between an earlier statement and the test."""
    names = names_read(test)
    members = frozenset(part.name for part in walk_expression(test) if isinstance(part, ir.Attr))
    places = _binding(function.body, names, members)
    place = bisect_right(places, since)
    return place < len(places) and places[place] < test.at


def _binding(body: tuple[ir.Stmt, ...], names: frozenset[str], members: frozenset[str]) -> tuple[int, ...]:
    """The ordinals of the statements that bind one of these names or attributes, in order."""
    known = _bindings(body)
    if (names, members) not in known:
        known[names, members] = tuple(
            statement.at
            for statement in walk_statements(body, into_definitions=False)
            if _binds(statement, names, members)
        )
    return known[names, members]


@kept
def _bindings(body: tuple[ir.Stmt, ...]) -> dict[tuple[frozenset[str], frozenset[str]], tuple[int, ...]]:
    """The memo of `_binding` for a body: repeated tests read the same names."""
    return {}


def _binds(statement: ir.Stmt, names: frozenset[str], members: frozenset[str]) -> bool:
    if any(binds(statement, name) for name in names):
        return True
    parts = (part for target in targets(statement) for part in walk_expression(target)) if members else ()
    if any(isinstance(part, ir.Attr) and part.name in members for part in parts):
        return True
    return "training" in members and any(
        isinstance(part, ir.Call) and dotted(part.func).rsplit(".", 1)[-1] in _SETS_MODE for part in parts_of(statement)
    )


__all__ = ["Meeting", "meet", "recall", "repeated_tests"]
