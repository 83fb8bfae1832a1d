"""Places that are emptied: their stores are dropped, at once or by the end of an iteration."""

from __future__ import annotations

from collections.abc import Callable

from memlint.analysis.domain.periods import FEW, is_flag, resets_soon, switched
from memlint.analysis.domain.state import State, reachable, with_members
from memlint.analysis.domain.summary.effects import Store
from memlint.analysis.domain.summary.function_state import FunctionState
from memlint.analysis.domain.values import EMPTY, NONE_VALUE, NOTHING, Path, Source, Sources, V, ordered
from memlint.analysis.transfer.held_values import tensors_within
from memlint.ir import nodes as ir


def drop_stores(fn: FunctionState, state: State, places: frozenset[Source]) -> None:
    """The places are emptied or overwritten: on this path, the iteration's stores into them, or into parts of them,
    are dropped."""
    if not places:
        return
    few = resets_soon(fn)
    _record_cleared(fn, places, not fn.returns and all(is_flag(state, test) for test in fn.tests))
    gone = {key for key in state.pending if _is_of(fn.stores[key], places)}
    stored = {id(fn.stores[key].loop) for key in gone}
    loops = set(fn.loops)
    for store in fn.stores.values() if loops else ():
        if store.loop is not None and store.loop in loops and _is_of(store, places):
            earlier = id(store.loop) not in stored
            begins = earlier and _each_round(fn, store.loop.body)
            if few or begins or (fn.tests and switched(fn, state, store.loop)):
                store.cleared = FEW
            elif earlier and not store.cleared:
                # emptied before this iteration's store: what earlier iterations kept is dropped here
                store.cleared = "cleared on some paths"
    for key in gone:
        store = fn.stores[key]
        if store.loop is None or store.loop in fn.loops:
            store.cleared = store.cleared or "cleared on some paths"
    state.pending -= gone


def _each_round(fn: FunctionState, body: tuple[ir.Stmt, ...]) -> bool:
    """Whether the current statement runs in every round of a loop with this body."""
    return any(
        statement is fn.statement or (isinstance(statement, ir.With) and _each_round(fn, statement.body))
        for statement in body
    )


def _is_of(store: Store, places: Sources) -> bool:
    """Whether a store goes to one of the places, or rebuilds one of them."""
    return _within(store.place, places) or not store.objs.isdisjoint(places)


def _within(place: Source, places: Sources) -> bool:
    """Whether a place is one of the places, or a part of one: ``self.kept`` is emptied with all its members."""
    if place in places:
        return True
    return isinstance(place, Path) and any(
        Path(place.root, place.steps[:end]) in places for end in range(len(place.steps))
    )


def _record_cleared(fn: FunctionState, places: Sources, flagged: bool) -> None:
    """Record for callers which places are emptied on some path, and whether flags alone decide over it."""
    rounds = any(loop.counts and loop.loop.every != "epoch" for loop in fn.loops)
    for place in places:
        if isinstance(place, Path):
            fn.notes.cleared[place] = fn.notes.cleared.get(place, False) or flagged
            if rounds:
                fn.notes.cleared_in_rounds.add(place)


def drop_stores_of_call(fn: FunctionState, state: State, places: Sources, *, flagged: bool) -> None:
    """A callee empties the places on some path. ``flagged``: on all paths or on none, as a flag decides."""
    few = flagged and (not fn.tests or any(switched(fn, state, loop) for loop in fn.loops))
    _record_cleared(fn, places, flagged)
    loops = set(fn.loops)
    for store in fn.stores.values() if loops else ():
        if store.loop is not None and store.loop in loops and _is_of(store, places):
            store.cleared = FEW if few else store.cleared or "cleared on some paths"


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
    """Drop the content of the container, and that of its members to which nothing else refers."""
    inner = with_members(state, container.objs) - container.objs
    for key, obj in state.objects(container):
        if len(container.objs) == 1:
            state.heap[key] = obj.emptied()
    for path in ordered(container.syms):
        state.sym[path.then("[]")] = NOTHING
    drop_stores(fn, state, container.objs | container.syms)
    if inner:
        release(fn, state, inner)
