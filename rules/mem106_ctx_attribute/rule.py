"""MEM106: an autograd function keeps a tensor as an attribute of its context."""

from __future__ import annotations

from collections.abc import Iterator

from memlint.sdk import ContextAttribute, Facts, Growth, Meta, Report

META = Meta(
    code="MEM106",
    name="ctx-attribute",
    summary="An autograd function keeps a tensor as an attribute of `ctx` instead of by `ctx.save_for_backward`.",
    severity="warning",
)

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
            "its grad_fn holds `ctx` and `ctx` holds it, a cycle that only the garbage collector frees"
            if cycle and not event.dropped
            else "backward takes it away, but where none runs (an evaluation while autograd records, a step that is "
            "skipped) its grad_fn holds `ctx` and `ctx` holds it, a cycle that only the garbage collector frees"
            if cycle
            else "it lives on after the backward() that frees what is saved, as long as the graph does"
        )
        shown = f"`{event.place}` keeps `{event.value}`," if event.value else f"`{event.place}` keeps"
        if event.value.startswith(("(", "[")):
            shown += " and in it"
        if event.old:
            cost += " (where it runs: torch 1.5 and later refuse functions whose forward is no static method)"
        yield Report(
            site=event.site,
            message=f"{shown} {WHAT[event.kept]}: {cost}",
            advice="hand it to `ctx.save_for_backward`, in one call for all tensors, and read `ctx.saved_tensors` in "
            "backward",
            severity="warning" if cycle and not event.small and not event.dropped and not event.old else "note",
            confidence=event.certainty,
            growth=Growth("device-tensor", "per-iteration" if cycle else "peak"),
            trace=event.trace,
        )
