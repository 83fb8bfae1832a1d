"""Outputs of a step that a framework collects for a hook at the end of the epoch."""

from __future__ import annotations

from memlint.analysis.domain.state import State
from memlint.analysis.domain.summary.effects import Spot
from memlint.analysis.domain.summary.function_state import FunctionState
from memlint.analysis.domain.values import (
    ACTIVATION,
    BATCH,
    CONTAINER,
    EMPTY,
    NOTHING,
    SCALAR,
    SOME_SIZE,
    TENSORS,
    Path,
    V,
    join,
    ordered,
)
from memlint.analysis.syntax.expression_text import text
from memlint.analysis.transfer.held_values import tensors_within
from memlint.analysis.transfer.stores.stores import note_store
from memlint.ir import nodes as ir

#: the operation (``how``) of such a store
OUTPUT_OF_STEP = "output"


def note_output(fn: FunctionState, state: State, value: V, statement: ir.Return) -> None:
    """Record what a step returns, where its class has the hook for which the framework collects the outputs. The
    framework detaches what it collects in training."""
    function, hook = fn.function, fn.hook
    if hook is None or function.cls is None or statement.value is None or not function.takes_self:
        return
    name = dict(hook.collected).get(function.name)
    reader = fn.analyser.program.method(function.cls, name) if name is not None else None
    if reader is None or len(reader.params) < 2:
        return
    if fn.analyser.program.method(function.cls, f"{function.name}_end") is not None:
        return  # the result of the ``_end`` hook is collected instead
    inner = _kept(fn, state, value) if hook.returns == "backward" else tensors_within(fn, state, value)
    inner = inner.but(src=EMPTY)
    if inner.size == SOME_SIZE and (size := _of_a_member(fn, state, value)) is not None:
        inner = inner.but(size=size)
    place = Path(f"p:{function.params[0].name}", (f".{reader.name}", f".{reader.params[1].name}"))
    spot = Spot(place, "foreign", f"{reader.params[1].name} of {reader.name}()")
    note_store(fn, state, OUTPUT_OF_STEP, spot, inner, statement.at, _shown(fn, state, inner, statement.value))


def _kept(fn: FunctionState, state: State, value: V) -> V:
    """The join of all tensors that a training step returns. The tensor itself, or the member ``loss``, is one
    number, since the framework calls backward() on it."""
    objs = [state.heap.get(key) for key in ordered(value.objs)]
    if any(obj is None or not obj.fields for obj in objs):
        return tensors_within(fn, state, value)
    found = _as_number(value.but(objs=EMPTY)) if value.may_be(TENSORS) else NOTHING
    for obj in objs:
        for name, part in obj.fields.items() if obj is not None else ():
            held = tensors_within(fn, state, part)
            found = join(found, _as_number(held) if name == "loss" else held)
    return found


def _as_number(value: V) -> V:
    return value.but(size=SCALAR, extent=None)


def _of_a_member(fn: FunctionState, state: State, value: V) -> int | None:
    """The size of a tensor among the members that has a batch's size for certain; None where there is none."""
    sizes = [
        {held.size for part in obj.fields.values() if (held := tensors_within(fn, state, part)).is_only(TENSORS)}
        for _, obj in state.objects(value)
    ]
    if not sizes or len(sizes) < len(value.objs) or not value.is_only(CONTAINER):
        return None
    return next((size for size in (BATCH, ACTIVATION) if all(size in one for one in sizes)), None)


def _shown(fn: FunctionState, state: State, inner: V, expr: ir.Expr) -> str:
    """The source text of what is kept; of a dictionary, the first variable in it with the size of the whole."""
    if isinstance(expr, ir.DictDisplay):
        for member in expr.values:
            held = state.env.get(member.id) if isinstance(member, ir.Name) else None
            if held is not None and held.may_be(TENSORS) and tensors_within(fn, state, held).size == inner.size:
                return text(member)
    return text(expr)
