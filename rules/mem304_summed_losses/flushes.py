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


class Flush(NamedTuple):
    """A branch that differentiates a sum and begins it anew. ``backwards``: the calls in it, by ordinal."""

    body: tuple[ir.Stmt, ...]
    backwards: frozenset[int]


def flushes(loop: LoopState, name: str) -> Iterator[Flush]:
    """The branches of a loop that run once in several rounds, differentiate, and then begin the place ``name`` anew."""
    counters = {text(one.target) for one in walk_statements(loop.body) if isinstance(one, ir.AugAssign)} - {name}
    for one in walk_statements(loop.body) if name else ():
        if isinstance(one, ir.If) and _counts(one.test, name, counters):
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


def _counts(test: ir.Expr, name: str, counters: set[str]) -> bool:
    """Whether a test is about a number of rounds: a remainder, or a comparison with a counter or the length of the
    place. (Other tests may hold in every round: ``if loss.isfinite()``.)"""
    for part in walk_expression(test):
        if isinstance(part, ir.Binary) and part.op == "%":
            return True
        if isinstance(part, ir.Compare) and any(
            dotted(one) in counters or (isinstance(one, ir.Call) and text(one) == f"len({name})")
            for one in walk_expression(part)
        ):
            return True
    return False
