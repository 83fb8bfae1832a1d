"""Losses of several batches that are summed in a loop, with one backward after it."""

from __future__ import annotations

from collections.abc import Iterator

from memlint.sdk import Place, Site
from memlint.sdk.project import Analyser, Class, Summary, is_small, layer_code, loop_of_sum, marks_of, size_of_class
from memlint.sdk.values import CallRecord, LoopState, Path, Source, Sources, Store, tensors_within

from .rule import SummedLosses
from .uses_of_sum import is_linear


def detect(analyser: Analyser, summary: Summary) -> Iterator[SummedLosses]:
    """The sums of one function whose graphs a single backward after the loop needs, one for each loop and backward."""
    seen: set[tuple[Source, Site]] = set()
    for store in summary.stores.values():
        found = next(_loops_of_batches(analyser, summary, store), None)
        if found is None or (loop := loop_of_sum(analyser, summary, store)) is None:
            continue
        state, backward = found
        loop = loop if state is store.loop else summary.seen(state)
        if (state.id, backward) in seen or loop.kind != "for" or loop.over in ("modules", "epochs"):
            continue
        if state.targets <= state.counters and _holds_own_state(analyser, summary, store):
            continue
        if _is_needed_whole(analyser, summary, store, state):
            continue
        seen.add((state.id, backward))
        yield SummedLosses(
            site=store.site,
            function=summary.function.qual,
            certainty="medium",
            place=Place(store.place_kind, store.place_text),
            loop=loop,
            backward=backward,
            small=_are_small(analyser, summary, store, state),
        )


def _loops_of_batches(analyser: Analyser, summary: Summary, store: Store) -> Iterator[tuple[LoopState, Site]]:
    """The loops around a sum, from inside out, whose iterations run models of their own, with the backward behind: the
    steps within a task depend on one another, and the tasks do not."""
    around = (*store.loops[: store.loops.index(store.loop.id)], store.loop.id) if store.loop is not None else ()
    for item in reversed(around) if summary.backwards else ():
        state = store.loop if store.loop is not None and item == store.loop.id else summary.notes.rounds.get(item)
        backward = _backward_behind(summary, store, item)
        if state is None or backward is None or (state is not store.loop and not _is_carried(summary, store, item)):
            return
        if _is_of_batches(analyser, summary, store, state):
            yield state, backward


def _backward_behind(summary: Summary, store: Store, loop: Source) -> Site | None:
    """The backward that uses the stored value, and is not in the loop; None if there is none."""
    marks = marks_of(store)
    return next((site for trained, loops, site, *_ in summary.backwards if marks & trained and loop not in loops), None)


def _is_carried(summary: Summary, store: Store, loop: Source) -> bool:
    """Whether a place keeps what it got in earlier iterations of a loop around its own."""
    if store.kind == "retain":
        return loop not in store.made
    reached = summary.graphs.closure(store.value.src)
    return any(isinstance(mark, tuple) and mark[:2] == ("prev", loop) and mark in reached for mark in marks_of(store))


def _is_of_batches(analyser: Analyser, summary: Summary, store: Store, loop: LoopState) -> bool:
    """Whether each iteration runs a model of its own: no time steps, and no parts of one earlier forward."""
    states = (other for other in summary.stores.values() if other.kind == "carry" and other.how == "call")
    outer = loop is not store.loop
    if any(other.loop is loop or (outer and _is_carried(summary, other, loop.id)) for other in states):
        return False  # time steps of a recurrence, not separate batches
    reached = _reached(summary, store)
    if any(isinstance(item, tuple) and item[:2] == ("prev", loop.id) for item in reached):
        return False  # a term depends on an earlier iteration: weights that each step updates, a previous output
    nodes = [node for item in reached if (node := summary.graphs.nodes.get(item)) is not None]
    if any(node.definite and not node.leaf and loop.id not in node.loops for node in nodes):
        return False  # all use one forward before the loop, whose graph the first backward would free
    if any(node.model and loop.id in node.loops for node in nodes):
        return True
    # a network of functions and parameters runs no layer: the call of its forward tells
    forwards = [record for record, _ in _forwards(analyser, summary, reached)]
    return bool(forwards) and all(loop.id in record.loops for record in forwards)


def _forwards(analyser: Analyser, summary: Summary, reached: Sources) -> Iterator[tuple[CallRecord, Class]]:
    """The calls of forwards of the project's modules to whose outputs these sources belong, with the classes."""
    for record in summary.calls.values():
        callee = analyser.function_at(record.callee)
        if callee is None or callee.cls is None or not layer_code(analyser, callee):
            continue
        inside = tensors_within(summary, summary.exit, record.result).src if summary.exit is not None else frozenset()
        if (record.result.src | inside) & reached:
            yield record, callee.cls


def _are_small(analyser: Analyser, summary: Summary, store: Store, loop: LoopState) -> bool:
    """Whether the graphs that an iteration adds are known to take little memory."""
    reached = _reached(summary, store)
    runs = [run for run in summary.runs.values() if loop.id in run.loops and run.marks & reached]
    if runs:
        return all(is_small(analyser, summary, run) for run in runs)
    sizes = {size_of_class(analyser, cls) for _, cls in _forwards(analyser, summary, reached)}
    return sizes == {"small"}


def _holds_own_state(analyser: Analyser, summary: Summary, store: Store) -> bool:
    """Whether the value includes an attribute that another method has set, possibly with that method's graph. What only
    a constructor sets has none: the backward of the second step would raise."""
    cls = summary.function.cls
    own = f"p:{summary.function.own_name}" if summary.function.takes_self else None
    names = {
        item.steps[0].removeprefix(".") if item.steps else ""
        for item in _reached(summary, store)
        if isinstance(item, Path) and item.root == own
    }
    return any(cls is None or not name or analyser.facts.attributes.is_set_later(cls, name) for name in names)


def _is_needed_whole(analyser: Analyser, summary: Summary, store: Store, loop: LoopState) -> bool:
    """Whether the graphs of all iterations are needed together: the backward goes through something that is not linear
    in the losses, or through another part of the same graphs that the loop collects."""
    start = loop.body[0].at if loop.body else 0
    if not is_linear(analyser, summary, store.place_text, store.site.at, start):
        return True
    nodes = _made_in(summary, store, loop)
    return any(
        other.kind == "retain"
        and loop.id in other.loops
        and _is_carried(summary, other, loop.id)
        and _made_in(summary, other, loop) & nodes
        and _backward_behind(summary, other, loop.id) is not None
        and loop_of_sum(analyser, summary, other) is None
        for other in summary.stores.values()
    )


def _made_in(summary: Summary, store: Store, loop: LoopState) -> Sources:
    """The parts of the kept graph that each iteration of a loop records anew, leaves aside."""
    nodes = summary.graphs.nodes
    return frozenset(
        item
        for item in _reached(summary, store)
        if item in nodes and loop.id in nodes[item].loops and not nodes[item].leaf
    )


def _reached(summary: Summary, store: Store) -> Sources:
    return summary.graphs.closure(store.entering.src)
