"""Tensors that code makes leaves of a graph: what is computed from them is recorded, whatever model computes it."""

from __future__ import annotations

from memlint.flow.frame import Frame
from memlint.flow.owner import parameters_of
from memlint.flow.state import State
from memlint.flow.values import EMPTY, MODULE, TENSORS, UNKNOWN, V
from memlint.ir import nodes as ir


def made_leaf(frame: Frame, state: State, place: ir.Expr, value: V, at: int) -> V:
    """``value.requires_grad = True`` or ``value.requires_grad_()``: the value as it is then, also for the variable that
    holds it. (A parameter is a leaf already, and a module is none.)"""
    if value.kinds & MODULE or not value.kinds & (TENSORS | UNKNOWN) or parameters_of(value):
        return value
    if any((node := frame.graphs.nodes.get(item)) is not None and node.definite for item in value.src):
        return value
    leaf = frame.record(state, (at, "leaf"), at, "requires_grad", EMPTY, definite=True, leaf=True)
    made = value.but(src=value.src | leaf)
    if isinstance(place, ir.Name) and state.env.get(place.id) is value:
        state.env[place.id] = made
    return made


__all__ = ["made_leaf"]
