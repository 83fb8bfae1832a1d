"""Tensors that code makes leaves of a graph: what is computed from them is recorded, whatever model computes it."""

from __future__ import annotations

from memlint.flow.frame import Frame
from memlint.flow.owner import parameters_of
from memlint.flow.state import ON, State
from memlint.flow.values import EMPTY, MODULE, TENSORS, UNKNOWN, Source, V
from memlint.ir import nodes as ir

#: how the mark of such a leaf begins
_FLAG = "requires_grad"


def made_leaf(frame: Frame, state: State, place: ir.Expr, value: V, at: int) -> V:
    """``value.requires_grad = True`` or ``value.requires_grad_()``: the value as it is then, also for the variable that
    holds it. (A parameter is a leaf already, and a module is none.)"""
    if value.kinds & MODULE or not value.kinds & (TENSORS | UNKNOWN) or parameters_of(value):
        return value
    if any((node := frame.graphs.nodes.get(item)) is not None and node.definite for item in value.src):
        return value
    grad, state.grad = state.grad, ON  # (a leaf is one in any mode)
    leaf = frame.record(state, (_FLAG, at), at, _FLAG, EMPTY, definite=True, leaf=True)
    state.grad = grad
    return _held(state, place, value, value.but(src=value.src | leaf))


def no_leaf(state: State, place: ir.Expr, value: V) -> V:
    """``value.requires_grad = False``: what is computed from it from here on is not recorded."""
    return _held(state, place, value, value.but(src=frozenset(item for item in value.src if not _is_flag(item))))


def _held(state: State, place: ir.Expr, value: V, made: V) -> V:
    if isinstance(place, ir.Name) and state.env.get(place.id) is value:
        state.env[place.id] = made
    return made


def _is_flag(item: Source) -> bool:
    return isinstance(item, tuple) and item[:1] == (_FLAG,)


__all__ = ["made_leaf", "no_leaf"]
