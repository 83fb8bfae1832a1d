"""MEM101: a running sum of losses that keeps the autograd graph of each of them."""

from __future__ import annotations

from collections.abc import Iterator

from memlint.sdk import (
    Carry,
    Facts,
    Growth,
    Memory,
    Meta,
    Report,
    Severity,
    Silent,
    as_number,
    cause,
    cut_plan,
    detached,
    each_round,
    kind_of_growth,
    leaves_graph,
    needed_graph,
    silent,
    weakest,
    weight,
    without_graph,
)

META = Meta(
    code="MEM101",
    name="loss-accumulation",
    summary="A loss is added to a running sum with its autograd graph.",
    severity="error",
)


SEEKS = "a value with a graph that a loop adds to something that outlives the iteration"
CANDIDATES = ("add",)

SILENT = (
    Silent(Carry, "", "", lambda event: event.how != "add"),
    needed_graph(Carry),
    without_graph(Carry),
    Silent(
        Carry,
        "not-a-loss",
        "`{event.value.text}` is a tensor of {event.value.size} size and not a loss: MEM103 is about such states",
        lambda event: event.value.size not in ("scalar", "unknown"),
    ),
)


def check(facts: Facts) -> Iterator[Report]:
    for event in facts.of(Carry):
        if silent(event, SILENT) is not None:
            continue
        value = event.value
        severity, memory, cost = _cost(event)
        yield Report(
            site=event.site,
            message=f"`{event.place.text}` keeps the autograd graph of every `{value.text}` added to it: "
            f"{cost} with {each_round(event.loop)}",
            help=_help(event),
            severity=severity,
            confidence=weakest(event.certainty, value.certainty),
            growth=Growth(memory, kind_of_growth(event.loop)),
            trace=(*value.origin, *event.trace, *cause(event)),
            fix=cut_plan(event.cut, as_number=facts.scalar_fix == "item" and value.size == "scalar"),
        )


def _cost(event: Carry) -> tuple[Severity, Memory, str]:
    """The severity, memory and text of the cost, by how much of the graph a backward has freed at the end of an
    iteration."""
    value = event.value
    where = "host" if value.graph_device == "cpu" else "device"
    memory: Memory = "host" if where == "host" else "device-graph"
    kept = weight(event)
    if value.freed == "no":
        return kept.activations, memory, f"{where} memory grows by the saved activations of a forward pass"
    if value.freed == "some":
        # a backward that does not run on every path may still run on all that are taken
        return (
            "note" if kept.activations == "note" else "warning",
            memory,
            f"where no backward() runs, {where} memory grows by its saved activations",
        )
    freed = "backward() frees its saved activations, " if value.freed == "yes" else ""
    return kept.nodes, "host", f"{freed}host memory grows by its nodes"


def _help(event: Carry) -> str:
    text = event.cut.text if event.cut is not None and len(event.cut.sites) == 1 else event.value.text
    number, tensor = as_number(text), detached(text)
    if event.value.moved:
        return f"add `{tensor if event.value.size == 'unknown' else number}`{leaves_graph(event.value)}"
    if event.value.size == "scalar":
        return f"add `{number}`, or `{tensor}` to avoid a device synchronization"
    return f"add `{tensor}`, or `{number}` if it holds one number"
