"""Attributes that a call assigns by a literal name: ``setattr(x, "mean", y)``, ``net.register_buffer("mean", y)``."""

from __future__ import annotations

from memlint.analysis.domain.state import State
from memlint.analysis.domain.summary.function_state import FunctionState
from memlint.analysis.domain.values import V
from memlint.analysis.transfer.assignment import write_attribute
from memlint.analysis.transfer.stores import carry
from memlint.ir import nodes as ir


def assign_attribute(
    fn: FunctionState, state: State, call: ir.Call, owner: tuple[ir.Expr, V], name: str, given: tuple[ir.Expr, V]
) -> None:
    """Write the attribute ``owner.name``, and record the carry if the value is computed from the old one. ``owner``,
    ``given``: the expressions and their values."""
    place, base = owner
    if isinstance(place, ir.Name | ir.Attr):
        target = ir.Attr(call.at, place, name)
        carry.note_assigned(fn, state, ir.Assign(call.at, (target,), given[0]), target, given[1])
    write_attribute(fn, state, base, name, given[1])
