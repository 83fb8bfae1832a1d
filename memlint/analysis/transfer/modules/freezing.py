"""Modules that are frozen through their weight, or because all their members are frozen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from memlint.analysis.domain.recorded_modes import freeze
from memlint.analysis.domain.state import State
from memlint.analysis.domain.values import MODULE, UNKNOWN, V, ordered
from memlint.analysis.transfer.modules.modes import MODULE_CONTAINERS, frozen_of
from memlint.ir import nodes as ir

if TYPE_CHECKING:
    from memlint.analysis.domain.summary.function_state import FunctionState


def note_frozen_weight(fn: FunctionState, state: State, place: ir.Expr, frozen: bool | None) -> None:
    """Record ``layer.weight.requires_grad = False`` for a layer of torch: it saves no input then."""
    if not isinstance(place, ir.Attr) or place.name != "weight":
        return
    layer = fn.interpreter.evaluate(fn, state, place.value)
    known = layer.refs and all(ref.kind == "extinstance" and ref.name.startswith("torch.nn.") for ref in layer.refs)
    if known and (frozen or frozen_of(fn, state, layer, place.value) is not False):
        freeze(state, layer, place.value, frozen)


def note_frozen_members(fn: FunctionState, state: State, name: str, args: list[V], made: V) -> None:
    """Record that ``nn.Sequential(*parts)`` is frozen where all its parts are."""
    if name not in MODULE_CONTAINERS or not args:
        return
    found = [frozen for value in args for frozen in _members_frozen(fn, state, value)]
    if found and all(found):
        freeze(state, made, None, True)


def _members_frozen(fn: FunctionState, state: State, value: V) -> Iterator[bool]:
    """For each module that a value may be or hold, whether it is frozen."""
    for part in _parts(state, value):
        for item in (*part.syms, *part.store):
            one = frozenset((item,))
            same = V(MODULE, refs=part.refs, syms=one) if item in part.syms else V(MODULE, refs=part.refs, store=one)
            yield frozen_of(fn, state, same, None) is True
        if not part.syms and not part.store:
            yield False


def _parts(state: State, value: V) -> Iterator[V]:
    """The possible modules among a value and the members of its containers."""
    if value.kinds & (MODULE | UNKNOWN):
        yield value
    for key in ordered(value.objs):
        obj = state.heap.get(key)
        for part in (*obj.fields.values(), obj.elem) if obj is not None else ():
            if part.kinds & (MODULE | UNKNOWN):
                yield part
