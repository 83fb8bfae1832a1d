"""Joins over alternative paths: the branches of a condition, or the methods that a call may run."""

from __future__ import annotations

from memlint.analysis.domain.state import State, join_states
from memlint.analysis.domain.summary.function_state import FunctionState
from memlint.analysis.domain.tensor_ops import cut
from memlint.analysis.domain.values import EMPTY, UNKNOWN, Sources


def join_branches(fn: FunctionState, ends: list[tuple[State | None, int, int]]) -> State | None:
    """The join of the branches' end states; None if no branch continues. Each branch comes with the graphs' clock at
    its begin and end."""
    joined: State | None = None
    for end, _, _ in ends:
        joined = join_states(joined, end)
    if joined is not None and sum(end is not None for end, _, _ in ends) > 1:
        # a graph that one branch makes and frees is freed: it does not exist in the others
        for end, begin, finish in ends:
            if end is not None:
                joined.freed_must |= fn.graphs.made_between(end.freed_must, begin, finish)
        ways = [end for end, _, _ in ends if end is not None]
        for end in ways:
            # a graph that only one branch frees, and then no longer holds, is not freed where others hold it
            others = [other for other in ways if other is not end]
            alone = end.freed_may - joined.freed_must - EMPTY.union(*(other.freed_may for other in others))
            if alone:
                joined.freed_may -= alone - fn.graphs.closure(_held(fn, end))
    return joined


def _held(fn: FunctionState, state: State) -> Sources:
    """The graphs that variables hold, and those that were made or stored since the iteration began."""
    made = (state.heap[key] for key in state.fresh if key in state.heap)
    inside = (value for obj in made if obj.loops == fn.loop_ids for value in (*obj.fields.values(), obj.elem))
    stored = (store.entering for store in (fn.stores[key] for key in state.pending))
    return EMPTY.union(*(value.src for value in (*state.env.values(), *inside, *stored)))


def stand_in(before: State, end: State, caught: State) -> None:
    """Treat a handler's substitute for a value without a graph as having no graph either: the handler rarely runs, and
    findings describe the ordinary path."""
    for name, value in caught.env.items():
        usual = end.env.get(name)
        if usual is None or usual is before.env.get(name) or not value.src or value is before.env.get(name):
            continue
        if not usual.src and not usual.kinds & UNKNOWN:
            caught.env[name] = cut(value)
