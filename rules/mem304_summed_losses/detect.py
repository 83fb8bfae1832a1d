"""Losses of several batches that are summed in a loop, with one backward after it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from memlint.sdk import Place, Site
from memlint.sdk.project import Analyser, Class, Summary, is_small, layer_code, loop_of_sum, marks_of, size_of_class
from memlint.sdk.syntax import ir, last_name, parts
from memlint.sdk.values import OFF, CallRecord, LoopState, Source, Sources, Store, tensors_within

from .flushes import flushes
from .operations import BACKWARD
from .rule import SummedLosses
from .shared_graphs import Shared
from .uses_of_sum import iteration_of, parts_of_loop, uses_behind, uses_of_call


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
        if not _could_be_apart(analyser, summary, store, state):
            continue
        seen.add((state.id, backward))
        yield SummedLosses(
            site=store.site,
            function=summary.function.qual,
            certainty="medium",
            place=Place(store.place_kind, store.place_text),
            loop=loop,
            backward=backward,
            within=any(state.id in one.loops for one in summary.backwards if one.site == backward),
            small=_are_small(analyser, summary, store, state),
        )


def _loops_of_batches(analyser: Analyser, summary: Summary, store: Store) -> Iterator[tuple[LoopState, Site]]:
    """The loops around a sum, from inside out, whose iterations run models of their own, with the backward behind: the
    steps within a task depend on one another, and the tasks do not."""
    around = (*store.loops[: store.loops.index(store.loop.id)], store.loop.id) if store.loop is not None else ()
    of_callers = next(_backwards_of_callers(analyser, summary, store), None) if around else None
    for item in reversed(around) if summary.backwards or of_callers is not None else ():
        state = store.loop if store.loop is not None and item == store.loop.id else summary.notes.rounds.get(item)
        backward = _backward_behind(summary, store, item) or _backward_of_rounds(summary, store, item) or of_callers
        if state is None or backward is None or (state is not store.loop and not _is_carried(summary, store, item)):
            return
        if _is_of_batches(analyser, summary, store, state):
            yield state, backward


def _backward_behind(summary: Summary, store: Store, loop: Source) -> Site | None:
    """The backward that uses the stored value, and is not in the loop; None if there is none."""
    marks = marks_of(store)
    return next((site for trained, loops, site, *_ in summary.backwards if marks & trained and loop not in loops), None)


def _backward_of_rounds(summary: Summary, store: Store, loop: Source) -> Site | None:
    """The backward that uses the stored value in some rounds of its loop, and begins the place anew there."""
    if store.loop is None or loop != store.loop.id:
        return None
    marks = marks_of(store)
    flushed = {at for one in flushes(store.loop, _name(store)) for at in one.backwards}
    return next(
        (
            one.site
            for one in summary.backwards
            if marks & one.reached and one.loops[-1:] == (loop,) and one.site.at in flushed
        ),
        None,
    )


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
    each = parts_of_loop(summary.function, loop)[1]
    if loop is store.loop:
        flushed = {part.at for one in flushes(loop, _name(store)) for part in parts(one.body)}
        each = [part for part in each if part.at not in flushed]
    if _runs_a_backward(analyser, summary, each, set()):
        return False  # its gradients would be added to those of the earlier losses
    sums = _sums(analyser, summary, store, loop)
    names = {_name(one) for one in sums} - {""}
    stores = [one for one in summary.stores.values() if one in sums or (_name(one) in names and loop.id in one.loops)]
    if Shared(analyser, summary, loop, stores, names, iteration_of(analyser, summary, loop)):
        return False
    reached = _reached(summary, store)
    nodes = summary.graphs.nodes_of(reached)
    if any(node.model and loop.id in node.loops for node in nodes):
        return True
    # a network of functions and parameters runs no layer: the call of its forward tells
    forwards = [record for record, _ in _forwards(analyser, summary, reached)]
    return bool(forwards) and all(loop.id in record.loops for record in forwards)


def _runs_a_backward(analyser: Analyser, summary: Summary, within: Iterable[ir.Expr], seen: set[object]) -> bool:
    """Whether expressions, or the functions of the project that they call, run a backward() that may add to the
    gradients of any parameter: one with ``inputs`` names those to which it adds. ``seen``: the functions that are
    known."""
    callees = {record.at: record.callee for record in summary.calls.values()}
    for call in within:
        if not isinstance(call, ir.Call):
            continue
        if last_name(call.func) in BACKWARD and not any(word.name == "inputs" for word in call.keywords):
            return True
        callee = analyser.function_at(key) if (key := callees.get(call.at)) is not None else None
        inner = analyser.summary(callee) if callee is not None and callee.key not in seen else None
        if callee is not None and inner is not None:
            seen.add(callee.key)
            if _runs_a_backward(analyser, inner, parts(callee.body), seen):
                return True
    return False


def _could_be_apart(analyser: Analyser, summary: Summary, store: Store, loop: LoopState) -> bool:
    """Whether a backward for each loss would add up to the same: each backward that is seen goes through what is linear
    in them, here or in all functions that get the sum from this one."""
    names = {_name(one) for one in _sums(analyser, summary, store, loop)} - {""}
    flushed = [one.body for name in sorted(names) for one in flushes(loop, name)]
    here = uses_behind(analyser, summary, loop, names, iteration_of(analyser, summary, loop), flushed)
    if here.is_bent or here.is_seen:
        return not here.is_bent
    calls = [(caller, record) for caller, record in analyser.facts.calls_of(summary.function) if record.grad != OFF]
    uses = [uses_of_call(analyser, caller, record.at) for caller, record in calls]
    return here.returned == "linear" and bool(uses) and all(one.is_seen and not one.is_bent for one in uses)


def _backwards_of_callers(analyser: Analyser, summary: Summary, store: Store) -> Iterator[Site]:
    """The backwards of callers that go through the sum that this function returns."""
    if summary.result is None or summary.exit is None:
        return
    returned = summary.result.src | tensors_within(summary, summary.exit, summary.result).src
    if not (summary.graphs.closure(returned) & (marks_of(store) | store.value.src)):
        return
    for caller, record in analyser.facts.calls_of(summary.function):
        held = tensors_within(caller, caller.exit, record.result).src if caller.exit is not None else frozenset()
        yield from (one.site for one in caller.backwards if (record.result.src | held) & one.reached)


def _sums(analyser: Analyser, summary: Summary, store: Store, loop: LoopState) -> list[Store]:
    """A store, and the others of its loop that sum or collect numbers with a graph."""
    return [
        other
        for other in summary.stores.values()
        if other is store
        or (
            (other.loop is loop or (loop.id in other.loops and _is_carried(summary, other, loop.id)))
            and loop_of_sum(analyser, summary, other) is not None
        )
    ]


def _name(store: Store) -> str:
    """The variable or attribute that a store fills, or of which it fills a member; "" for a comprehension."""
    name = store.place_text.partition("[")[0]
    return name if name.replace(".", "").isidentifier() else ""


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


def _reached(summary: Summary, store: Store) -> Sources:
    return summary.graphs.closure(store.entering.src)
