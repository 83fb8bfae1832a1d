"""Containers that a name, an attribute or a statement releases, with their content."""

from __future__ import annotations

from collections.abc import Callable

from memlint.analysis.domain.state import State, reachable, with_members
from memlint.analysis.domain.summary.function_state import FunctionState
from memlint.analysis.domain.values import EMPTY, NONE_VALUE, NOTHING, Path, Source, Sources, V, ordered
from memlint.analysis.transfer.held_values import tensors_within
from memlint.analysis.transfer.stores.emptied_places import drop_stores
from memlint.ir import nodes as ir


def release(fn: FunctionState, state: State, keys: Sources) -> None:
    """A name releases containers: those to which nothing else refers are dropped with their content."""
    fn.spend((len(state.env) + len(state.sym) + len(state.heap)) // 16)
    gone = with_members(state, keys) - reachable(state)
    if gone:
        drop_stores(fn, state, gone)


def rebind(fn: FunctionState, state: State, old: V | None, value: V, put: Callable[[V], None]) -> None:
    """Bind a place whose value was ``old`` to ``value``, by ``put``. A container that the current statement makes
    has the key of the one that it made in the round before, which is released where nothing else refers to it."""
    anew = _made_again(fn, state, old, value)
    if anew:
        put(NONE_VALUE)
        release(fn, state, anew)
    put(value)
    if old is not None and old.objs and not old.objs & value.objs:
        release(fn, state, old.objs)


def is_rebuilt(fn: FunctionState, state: State, place: Source, value: V) -> bool:
    """Whether a value contains what the place, or a member of it, held before (``self.losses = self.losses +
    [loss]``), or what is computed from that (``self.hidden = (h, c)``)."""
    places = (place, place.then("[]")) if isinstance(place, Path) else (place,)
    if any(fn.stores[key].place in places and not fn.stores[key].objs.isdisjoint(value.objs) for key in state.pending):
        return True
    if not isinstance(place, Path) or not value.objs:
        return False
    held = tensors_within(fn, state, value).src
    return bool(parts_among(place, fn.graphs.closure(held - parts_among(place, held))))


def parts_among(place: Path, sources: Sources) -> Sources:
    """The sources that stand for what a place, or a part of it, held before."""
    return frozenset(
        one
        for one in sources
        if isinstance(whole := one[2] if isinstance(one, tuple) and one[0] == "prev" else one, Path)
        and whole.is_in(place)
    )


def _made_again(fn: FunctionState, state: State, old: V | None, value: V) -> Sources:
    """The containers that the current statement has just made from new values, and that the place already held."""
    statement = fn.statement
    if old is None or not old.objs or not fn.loops or not isinstance(statement, ir.Assign | ir.AnnAssign):
        return EMPTY
    at = statement.value.at if statement.value is not None else None
    obj = state.heap.get(at)
    if at not in old.objs or at not in value.objs or at not in state.fresh or obj is None or obj.cls is not None:
        return EMPTY
    if any(at in fn.stores[key].objs for key in state.pending):
        return EMPTY  # it holds what the one of the round before held: ``losses = losses + [loss]``
    return EMPTY if any(one.objs for one in obj.members) else frozenset((at,))


def empty(fn: FunctionState, state: State, container: V) -> None:
    """Drop the content of the container."""
    for key, obj in state.objects(container):
        if len(container.objs) == 1:
            state.heap[key] = obj.emptied()
    for path in ordered(container.syms):
        state.sym[path.then("[]")] = NOTHING
    drop_stores(fn, state, container.objs | container.syms)
