"""MEM115: variables of a training loop hold a graph that no backward has freed while the next one is recorded."""

from __future__ import annotations

from collections.abc import Iterator

from memlint.sdk import Event, Facts, Growth, Loop, Meta, Report

META = Meta(
    code="MEM115",
    name="live-loop-variables",
    summary="An iteration without a backward leaves its graph in variables while the next one records another.",
    severity="note",
)


class LiveGraph(Event, frozen=True, gc=False, kw_only=True):
    """An iteration of a training loop ends without the backward of its graph, which variables hold while the model runs
    in the next one. ``names``: those variables; ``model``: what runs; ``test``: the condition; ``skips``: a
    ``continue`` ends the iteration, otherwise only the backward is skipped."""

    names: tuple[str, ...]
    model: str
    test: str
    loop: Loop
    skips: bool


def check(facts: Facts) -> Iterator[Report]:
    for event in facts.of(LiveGraph):
        when = f"where `{event.test}`" if event.skips else f"unless `{event.test}`"
        yield Report(
            site=event.site,
            message=f"{when}, no backward() frees this iteration's graph: `{event.names[0]}` still holds what "
            f"`{event.model}` saved while the next iteration runs it, so the peak has two graphs",
            help=f"`del {', '.join(event.names[:3])}` before the next iteration, or decide before the model runs",
            severity="note",
            confidence=event.certainty,
            growth=Growth("device-graph", "peak"),
            trace=event.trace,
        )
