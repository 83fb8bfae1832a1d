"""Modules that are frozen through their weight, or because all their members are frozen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from memlint.analysis.domain.recorded_modes import freeze
from memlint.analysis.domain.state import State
from memlint.analysis.domain.values import EMPTY, MODULE, UNKNOWN, V
from memlint.analysis.syntax.syntax import last_name
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


def freeze_unknown(fn: FunctionState, state: State, call: ir.Call, value: V, args: list[V]) -> V | None:
    """Record that a value of which nothing is known is frozen (``net.requires_grad_(False)``, ``net.freeze()``), or no
    longer. Its variable or attribute holds it from then on with a key, so that the record is found where the value is
    returned, renamed or declared a module. The result is the module, or None if the call has another."""
    name, place = last_name(call.func), call.func.value if isinstance(call.func, ir.Attr) else None
    flag = args[0].const if args else name == "requires_grad_"
    if place is None or value.syms or not (name == "requires_grad_" or (name == "freeze" and not call.passed)):
        return None
    if flag is not False:
        if frozen_of(fn, state, value, place) is not None:
            freeze(state, value, place, False if flag is True else None)
        return None
    if not value.store:
        value = value.but(store=frozenset((call.at,)))
        if isinstance(place, ir.Name) and place.id in state.env:
            state.env[place.id] = value
        if isinstance(place, ir.Attr):
            holders = fn.interpreter.evaluate(fn, state, place.value).syms
            state.sym.update((path.then(f".{place.name}"), value) for path in holders if len(holders) == 1)
    freeze(state, value, place, True)
    return value.but(kinds=MODULE, src=EMPTY) if name == "requires_grad_" else None


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
    for _, obj in state.objects(value):
        for part in obj.members:
            if part.kinds & (MODULE | UNKNOWN):
                yield part
