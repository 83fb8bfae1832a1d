"""Places that are emptied: their stores are dropped, at once or by the end of an iteration."""

from __future__ import annotations

from memlint.analysis.domain.periods import FEW, is_flag, resets_soon, switched
from memlint.analysis.domain.state import State
from memlint.analysis.domain.summary.effects import Store
from memlint.analysis.domain.summary.function_state import FunctionState
from memlint.analysis.domain.values import Path, Source, Sources
from memlint.ir import nodes as ir


def drop_stores(fn: FunctionState, state: State, places: frozenset[Source]) -> None:
    """The places are emptied or overwritten: on this path, the iteration's stores into them, or into parts of them,
    are dropped."""
    if not places:
        return
    few = resets_soon(fn)
    _note_cleared(fn, state, places)
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


def _note_cleared(fn: FunctionState, state: State, places: Sources) -> None:
    """Record for callers which places are emptied on some path, and whether flags alone decide over it."""
    _record_cleared(fn, places, not fn.returns and all(is_flag(state, test) for test in fn.tests))


def _record_cleared(fn: FunctionState, places: Sources, flagged: bool) -> None:
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
