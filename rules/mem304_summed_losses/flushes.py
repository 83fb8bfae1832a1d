"""Sums that every few rounds of their loop differentiate and begin anew: gradient accumulation by hand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from memlint.sdk.syntax import (
    dotted,
    ir,
    last_name,
    mentions,
    parts,
    text,
    unpacked_targets,
    walk_expression,
    walk_statements,
)
from memlint.sdk.values import LoopState

from .operations import BACKWARD

#: a literal number of rounds whose graphs are few
FEW = 2


class Flush(NamedTuple):
    """A branch that differentiates a sum and begins it anew. ``backwards``: the calls in it, by ordinal."""

    body: tuple[ir.Stmt, ...]
    backwards: frozenset[int]


def flushes(loop: LoopState, name: str) -> Iterator[Flush]:
    """The branches of a loop that run once in several rounds, differentiate, and then begin the place ``name`` anew."""
    counters = {text(one.target) for one in walk_statements(loop.body) if isinstance(one, ir.AugAssign)} - {name}
    for one in walk_statements(loop.body) if name else ():
        if not isinstance(one, ir.If):
            continue
        anew = [each for each in counters if any(_begins(inner, each) for inner in walk_statements(one.body))]
        if _counts(one.test, {f"len({name})", *anew}):
            found = frozenset(_backwards_before_reset(one.body, name))
            if found:
                yield Flush(one.body, found)


def _backwards_before_reset(block: tuple[ir.Stmt, ...], name: str) -> Iterator[int]:
    for position, statement in enumerate(block):
        if any(_begins(one, name) for one in walk_statements(block[position + 1 :])):
            for part in parts((statement,)):
                if isinstance(part, ir.Call) and last_name(part.func) in BACKWARD:
                    yield part.at


def _begins(statement: ir.Stmt, name: str) -> bool:
    """Whether a statement empties a place or assigns what does not depend on it."""
    if isinstance(statement, ir.Assign):
        return not mentions(statement.value, name) and any(
            dotted(target) == name for target in unpacked_targets(statement)
        )
    called = statement.value if isinstance(statement, ir.ExprStmt) else None
    return isinstance(called, ir.Call) and dotted(called.func) == f"{name}.clear"


def _counts(test: ir.Expr, numbers: set[str]) -> bool:
    """Whether a test holds once in several rounds: a remainder is one number, or what the branch begins anew, or the
    length of the place, has come to a limit. (Other tests may hold in every round: ``if loss.isfinite()``.)"""
    for part in walk_expression(test):
        if isinstance(part, ir.Unary) and part.op == "not" and _is_remainder(part.operand):
            return True
        if not isinstance(part, ir.Compare) or len(part.ops) != 1:
            continue
        sides = (part.left, *part.rights)
        if part.ops[0] == "==" and any(_is_remainder(side) for side in sides):
            return True
        reached = {"==": sides, ">": sides[:1], ">=": sides[:1], "<": sides[1:], "<=": sides[1:]}.get(part.ops[0], ())
        few = any(isinstance(side, ir.Const) and isinstance(side.value, int) and side.value <= FEW for side in sides)
        if not few and any(text(side) in numbers for side in reached):
            return True
    return False


def _is_remainder(expr: ir.Expr) -> bool:
    return isinstance(expr, ir.Binary) and expr.op == "%" and not isinstance(expr.left, ir.Const)
