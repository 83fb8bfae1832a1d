"""MEM106: an autograd function stores a tensor as an attribute of its context."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from memlint.sdk import Event, Facts, Growth, Meta, Report, Step

META = Meta(
    code="MEM106",
    name="ctx-attribute",
    summary="An autograd function keeps a tensor as an attribute of `ctx`, not by `ctx.save_for_backward`.",
    severity="warning",
)

#: what the context holds: an output, a view of one, an intermediate result, an input
KeptTensor = Literal["output", "view", "intermediate", "input"]


class ContextAttribute(Event, frozen=True, gc=False, kw_only=True):
    """An autograd function stores a tensor as an attribute of its context. ``place``: ``ctx.x``; ``value``: the source
    of the tensor ("" if unknown); ``small``: it is a single number; ``dropped``: backward releases it, which helps if a
    backward runs; ``old``: the function is of the style that torch 1.5 and later reject, whose context is the function
    itself."""

    kept: KeptTensor
    place: str
    value: str
    small: bool
    dropped: bool = False
    old: bool = False


WHAT = {
    "output": "an output of the function",
    "view": "a view of an output of the function",
    "intermediate": "an intermediate of the function",
    "input": "an input of the function",
}


def check(facts: Facts) -> Iterator[Report]:
    for event in facts.of(ContextAttribute):
        cycle = event.kept in ("output", "view")
        cost = (
            "its grad_fn and `ctx` form a reference cycle, whose memory only the garbage collector frees"
            if cycle and not event.dropped
            else "without a backward(), its grad_fn and `ctx` form a cycle that only the garbage collector frees"
            if cycle
            else "its memory outlives the backward() that frees saved tensors, as long as the graph does"
        )
        shown = f"`{event.place}` keeps `{event.value}`," if event.value else f"`{event.place}` keeps"
        if event.value.startswith(("(", "[")):
            shown += " and in it"
        old = Step(event.site, "torch 1.5 and later refuse an autograd function whose forward is no static method")
        yield Report(
            site=event.site,
            message=f"{shown} {WHAT[event.kept]}: {cost}",
            help="pass all tensors to one call of `ctx.save_for_backward`, and read `ctx.saved_tensors` in backward",
            severity="warning" if cycle and not event.small and not event.dropped and not event.old else "note",
            confidence=event.certainty,
            growth=Growth("device-tensor", "per-iteration" if cycle else "peak"),
            trace=(*event.trace, old) if event.old else event.trace,
        )
