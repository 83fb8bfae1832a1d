"""Stores: which place receives a value, and which loop the place outlives."""

from __future__ import annotations

from collections.abc import Sequence

from memlint.analysis.domain.events import PlaceKind
from memlint.analysis.domain.graph_lifetime import freed_by_backward, of_loop
from memlint.analysis.domain.periods import FEW, first_rounds
from memlint.analysis.domain.state import State, reachable, untouched
from memlint.analysis.domain.summary.effects import LoopState, Spot, Store
from memlint.analysis.domain.summary.function_state import FunctionState
from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.domain.tensor_ops import names_text
from memlint.analysis.domain.values import (
    CONTAINER,
    DATA,
    INSTANCE,
    MODULE,
    NONE,
    TENSORS,
    UNKNOWN,
    Path,
    Source,
    V,
    join,
    ordered,
)
from memlint.analysis.syntax.rebuilding import windows
from memlint.analysis.syntax.syntax import walk_statements
from memlint.analysis.transfer.heap import members
from memlint.analysis.transfer.held_values import tensors_within
from memlint.analysis.transfer.loops import changes_each_round
from memlint.analysis.transfer.modules.flags import of_eval_mode
from memlint.analysis.transfer.stores.written_keys import begun_where_missing
from memlint.ir import nodes as ir


def store_value(
    fn: FunctionState, state: State, container: V, how: str, value: V, at: int, shown: str, place_text: str
) -> None:
    """Record that ``value`` enters a container by the operation ``how`` (append, key …)."""
    inner = tensors_within(fn, state, value)
    parts = parts_of(fn, state, value)
    sure = any(map(has_graph_for_sure, _members_of(fn, state, value, ("instance",)).values()))
    if not container.objs and not container.syms and inner.src:
        # whoever holds the unknown container may call backward on the value
        fn.leave(fn.graphs.closure(inner.src))
    spots: list[Spot] = []
    for key, obj in state.objects(container):
        state.heap[key] = obj.with_elem(join(obj.elem, value))
        if not obj.bounded:
            spots.append(Spot(key, "local", place_text))
    for path in ordered(container.syms):
        inside = path.then("[]")
        state.sym[inside] = join(state.sym.get(inside) or untouched(inside), value)
        if not any(ref.kind == "bounded" for ref in container.refs):
            spots.append(Spot(path, kind_of(path), place_text))
    for spot in spots:
        made = note_store(fn, state, how, spot, inner, at, shown, parts=parts, sure_part=sure)
        if made is not None:
            made.vague = not container.may_be(CONTAINER)


def parts_of(fn: FunctionState, state: State, value: V) -> dict[str, V]:
    """The members of the tuple, list or dictionary that is stored, by position or key; empty for another value."""
    return _members_of(fn, state, value, ("tuple", "list", "dict"))


def _members_of(fn: FunctionState, state: State, value: V, kinds: tuple[str, ...]) -> dict[str, V]:
    """The members of the only object that a value may be; empty where it may be several, or one of other kinds."""
    obj = state.heap.get(next(iter(value.objs))) if len(value.objs) == 1 else None
    if obj is None or obj.kind not in kinds:
        return {}
    return {name: tensors_within(fn, state, member) for name, member in obj.fields.items()}


def has_graph_for_sure(part: V) -> bool:
    """Whether a member of a record has a graph, and is a number on no path."""
    return bool(part.src) and not part.may_be(DATA | NONE)


#: kinds of places by the root of their symbol
_KINDS: dict[str, PlaceKind] = {"g:": "global", "c:": "closure"}


def kind_of(path: Path) -> PlaceKind:
    """The kind of place that a symbol stands for."""
    return _KINDS.get(path.root[:2], "attribute" if path.steps and path.steps[0].startswith(".") else "parameter")


def outlived(fn: FunctionState, state: State, place: Source) -> tuple[tuple[Source, ...], bool]:
    """The loops that make the place anew, and whether on some path it survives them, at the current point."""
    obj = None
    if not isinstance(place, Path):
        place = place if place in state.heap else _object_of(place)
        obj = state.heap.get(place)
    if obj is None:
        return (), False
    if place in state.fresh:
        return obj.loops, False
    inner = fn.innermost(())
    if inner is not None and inner.id in obj.loops:
        return tuple(item for item in obj.loops if item != inner.id), True
    return obj.loops, False


def note_store(
    fn: FunctionState,
    state: State,
    how: str,
    spot: Spot,
    value: V,
    at: int,
    shown: str,
    *,
    tag: Source = None,
    parts: dict[str, V] | None = None,
    sure_part: bool = False,
    growing: tuple[LoopState, ...] | None = None,
) -> Store | None:
    """Record a store, which is judged at the end of the iteration; None where nothing is kept. ``sure_part``: a
    member that is not in ``parts`` has a graph for sure. ``growing``: the loops each round of which adds a member;
    by default, all loops around it."""
    made, survives = outlived(fn, state, spot.place)
    made = _kept_in(fn, state, spot, made) if survives else made
    around = _around(fn, made, spot, fn.loops if growing is None else growing)
    if (around is None and not isinstance(spot.place, Path)) or _keeps_nothing(fn, value, shown):
        return None
    store = begun_store(fn, state, ("s", at, spot.place, "retain", tag), how, spot, value, around, shown)
    store.made, store.parts, store.record = made, parts or {}, bool(parts)
    store.sure_part = sure_part or any(map(has_graph_for_sure, store.parts.values()))
    store.cleared = _cleared(fn, spot, survives)
    store.evaluates = of_eval_mode(fn.function, store.tests)
    store.inner = store.local and any(item.id in made and item.loop.over == "loader" for item in fn.loops)
    return _pending(fn, state, store)


def _kept_in(fn: FunctionState, state: State, spot: Spot, made: tuple[Source, ...]) -> tuple[Source, ...]:
    """The loops that make a place anew; for a member that the innermost loop picks (``for key, value in
    values.items(): kept[key].append(value)``), those that make its container anew, which keeps it until then."""
    inner = fn.innermost(())
    if inner is None or isinstance(spot.place, Path) or not _is_member(spot, inner):
        return made
    around = [
        obj for obj in state.heap.values() if any(spot.place in one.objs for one in (obj.elem, *obj.fields.values()))
    ]
    return tuple(item for item in made if any(item in obj.loops for obj in around)) if around else made


def begun_store(
    fn: FunctionState, state: State, key: Source, how: str, spot: Spot, value: V, loop: LoopState | None, shown: str
) -> Store:
    """A store at the current point. ``key``: with its ordinal, place and kind."""
    _, at, place, kind, _ = key
    local, tests = not isinstance(place, Path), tuple(fn.tests)
    around, site = fn.loop_ids, fn.site(at)
    return Store(key, kind, how, *spot, value, site, (), loop, around, shown, local=local, grad=state.grad, tests=tests)


def _pending(fn: FunctionState, state: State, store: Store) -> Store:
    """Add a store to those of the iteration, with what earlier passes over its statement tell."""
    old, value = fn.stores.get(store.key), store.value
    if old is not None:
        store.cleared = store.cleared or old.cleared
        store.freed, store.ended, store.guessed = old.freed, old.ended, old.guessed
        if store.incoming is None:
            value = join(old.value, value)
        elif old.incoming is not None:
            store.incoming = join(old.incoming, store.incoming)
    # a backward has freed the graph of what enters each time that the store is interpreted
    freed = old is None or old.spent
    freed = freed and freed_by_backward(fn, state, of_loop(fn, store.loop, store.entering.src)) == "yes"
    store.spent, store.value = freed, value
    fn.stores[store.key] = store
    state.pending |= {store.key}
    return store


def _cleared(fn: FunctionState, spot: Spot, survives: bool) -> str:
    """Why a place keeps few values, in words: what empties it, or what bounds it; "" where nothing does.
    ``survives``: on some path it outlives the loops that make it anew."""
    if first_rounds(fn) or spot.text in windows(fn.function.body):
        return FEW
    if not survives or begun_where_missing(fn.function.body, spot.text):
        return ""
    return FEW if spot.place in fn.made_soon else "created again on some paths"


def _keeps_nothing(fn: FunctionState, value: V, shown: str) -> bool:
    """Whether a value surely is no tensor, holds no tensor, and has no graph."""
    if value.is_plain() and not value.src:
        return True
    # an object that the caller made may hold what the caller stored in it
    of_caller = value.kinds & INSTANCE and not value.kinds & MODULE and bool(value.syms)
    if not of_caller and not value.may_be(TENSORS | UNKNOWN | DATA | CONTAINER):
        return True
    return not value.src and _picked_by_names(fn, shown)


def _around(fn: FunctionState, made: tuple[Source, ...], spot: Spot, growing: Sequence[LoopState]) -> LoopState | None:
    """The loop that the place outlives; None where it outlives none. A place that belongs to the loop variable of an
    inner loop (``for callback in callbacks: callback.add(loss)``), or that it picks (``kept[i].append(losses[i])``),
    is another one in each of that loop's rounds: it grows with the loop around it."""
    loops = [loop for loop in reversed(fn.loops) if loop.counts and loop.id not in made and loop in growing]
    lasting = [loop for loop in loops if not _is_member(spot, loop)]
    return _over_batches(lasting) if lasting else loops[0] if loops else None


def _is_member(spot: Spot, loop: LoopState) -> bool:
    """Whether a place is or belongs to the loop variable's object, or is picked by the loop variable."""
    place, shown = spot.place, spot.text
    picked = (f"[{name}]" in shown or f".setdefault({name}, " in shown for name in loop.targets)
    inside = _is_item(place, loop) if isinstance(place, Path) else _object_of(place) in loop.items
    return inside or (not loop.loop.over_data and any(picked))


def _picked_by_names(fn: FunctionState, shown: str) -> bool:
    """Whether a value is picked by a key that most often names a text: ``for key in ("fname", "index"): kept[key] +=
    batch[key]``."""
    return shown.endswith("]") and any(
        isinstance(statement, ir.For)
        and isinstance(statement.target, ir.Name)
        and shown.endswith(f"[{statement.target.id}]")
        and isinstance(statement.iter, ir.Display)
        and all(isinstance(one, ir.Const) and names_text(str(one.value)) for one in statement.iter.elements)
        for statement in walk_statements(fn.function.body, into_definitions=False)
    )


def own_sources(fn: FunctionState, place: Source) -> frozenset[Source]:
    """The graph sources by which a place's previous value is known: its marks in the loops around, and its symbol."""
    marks = {("prev", loop.id, mark_name(place)) for loop in fn.loops}
    return frozenset(marks | {place}) if isinstance(place, Path) else frozenset(marks)


def mark_name(place: Source) -> Source:
    """The name of a place within the marks of its previous value."""
    if isinstance(place, Path):
        return place
    kind, name = place
    return name if kind == "var" else (kind, name.lstrip(".").strip("[]"))


def _object_of(place: Source) -> Source:
    return place[0] if isinstance(place, tuple) and not isinstance(place, Path) else place


def carried_by(fn: FunctionState, place: Source, reached: frozenset[Source], index: str = "") -> LoopState | None:
    """The innermost iteration loop whose previous round's value of the place is in ``reached``; None for no loop.

    ``index``: the variable that picks the member; a loop that rebinds it, or a variable that it is derived from, visits
    another member in each round.
    """
    name, owner = mark_name(place), _object_of(place)
    found = [
        loop
        for loop in reversed(fn.loops)
        # a place of the loop variable's object is another one in the next round
        if not (_is_item(place, loop) if isinstance(place, Path) else owner in loop.items)
        and ("prev", loop.id, name) in reached
        and loop.counts
        and not (index and changes_each_round(loop, index))
    ]
    return _over_batches(found) if found else None


def _over_batches(loops: list[LoopState]) -> LoopState:
    """The loop by which a place is judged, of those that it outlives, innermost first. A loop over the rows of a
    batch, or over steps with it, gives way to the loop over batches around it, with which the place grows as well."""
    if loops[0].loop.over_data:
        return loops[0]
    return next((loop for loop in loops[1:] if loop.loop.over == "loader" or loop.loop.batches), loops[0])


#: iterables that give other objects each time the loop runs
_OF_DATA = ("loader", "rows")


def note_carry(
    fn: FunctionState,
    state: State,
    how: str,
    spot: Spot,
    value: V,
    incoming: V,
    at: int,
    shown: str,
    *,
    tag: Source = None,
    index: str = "",
) -> Store | None:
    """Record that a place was rebuilt from its own previous value; None where it was not."""
    place, reached = spot.place, fn.graphs.closure(value.src)
    loop = carried_by(fn, place, reached, index)
    if isinstance(place, Path) and place.root.startswith("x:"):
        loop = fn.innermost(())
    if loop is None and not (isinstance(place, Path) and place in reached):
        return None
    if isinstance(place, Path) and any(one.loop.over in _OF_DATA and _is_item(place, one) for one in fn.loops):
        return None  # a part of this round's batch: the next round has another batch
    store = begun_store(fn, state, ("s", at, place, "carry", tag), how, spot, value, loop, shown)
    store.incoming = incoming.but(src=incoming.src - own_sources(fn, place))
    store.made = outlived(fn, state, _object_of(place))[0]
    return _pending(fn, state, store)


def _is_item(place: Path, loop: LoopState) -> bool:
    return any(isinstance(item, Path) and item.steps and place.is_in(item) for item in loop.items)


def carried_loosely(summary: Summary, store: Store) -> bool:
    """Whether the carry's previous value reaches the new one only through unresolved calls."""
    if store.kind != "carry" or store.loose:
        return store.loose
    return not marks_of(store) & summary.graphs.sure(store.value.src)


def marks_of(store: Store) -> set[Source]:
    """The marks (graph sources) that identify a later use of the place."""
    place = store.place
    if isinstance(place, Path):
        own = {place, place.then("[]")} if store.kind == "retain" else {place}
        return own | {("prev", loop, item) for loop in store.loops for item in tuple(own)}
    if store.kind == "retain":
        return {("elem", place), *(("elem", key) for key in store.objs)}
    return {("prev", loop, mark_name(place)) for loop in store.loops}


def end_iteration(
    fn: FunctionState, state: State, loop: LoopState | None, among: frozenset[Source] | None = None
) -> None:
    """Judge the stores of an iteration at its end, or those of them in ``among``: whether the graph is freed, and
    whether the place still exists."""
    held: frozenset[Source] | None = None
    for key in state.pending:
        store = fn.stores[key]
        if store.loop is not loop or (among is not None and key not in among):
            continue
        if store.local and not isinstance(store.place, tuple | Path):
            if held is None:
                held = reachable(state)
            if store.place not in held:
                continue
        if store.kind == "carry" and not _still_there(fn, state, store.place):
            continue
        store.ended = True
        sources = store.entering.src
        # the path of an exception that leaves before the store has stored nothing
        fate = "yes" if store.spent else freed_by_backward(fn, state, of_loop(fn, loop, sources))
        dead = fn.graphs.closure(sources) & state.freed_must
        store.dead = store.dead or any(item in fn.graphs.nodes for item in dead)
        if fate is not None:
            store.freed = fate if store.freed in (None, fate) else "some"


def _still_there(fn: FunctionState, state: State, place: Source) -> bool:
    """Whether at the end of the round the place holds a graph that the next round can build on."""
    if isinstance(place, Path):
        value = state.sym.get(place)
    else:
        key, step = place
        obj = None if key == "var" else state.heap.get(key)
        value = state.env.get(step) if key == "var" else None
        if obj is not None:
            name = step.lstrip(".").strip("[]")
            value = obj.fields.get(name, obj.elem) if name else members(obj)
    if value is None:
        return True
    # a leaf has no graph behind it (``x = x.detach().requires_grad_()``); nor has this round built what the place held
    # before, on a path that does not write to it
    return any(
        not fn.graphs.nodes[item].leaf if item in fn.graphs.nodes else isinstance(item, Path) and item != place
        for item in tensors_within(fn, state, value).src
    )
