"""MEM102: values that carry an autograd graph, stored in something that outlives the iteration."""

from __future__ import annotations

from collections.abc import Iterator

from memlint.sdk import (
    Facts,
    Growth,
    Memory,
    Meta,
    Report,
    Retain,
    Severity,
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
    code="MEM102",
    name="retained-graph",
    summary="A tensor is stored with its autograd graph in something that outlives the iteration.",
    severity="warning",
)

LARGE = ("batch", "activation", "model")


SEEKS = "a tensor with a graph that a loop stores in something that outlives the iteration"
CANDIDATES = ("retain",)

SILENT = (
    needed_graph(Retain),
    without_graph(Retain),
)


def check(facts: Facts) -> Iterator[Report]:
    for event in facts.of(Retain):
        if silent(event, SILENT) is not None:
            continue
        value = event.value
        severity, memory, cost = _cost(event)
        yield Report(
            site=event.site,
            message=f"`{event.place.text}` keeps `{value.text}` and its autograd graph: {cost} with "
            f"{each_round(event.loop)}",
            help=_help(event),
            severity=severity if _is_proven(event) else "note",
            confidence=weakest(event.certainty, value.certainty),
            growth=Growth(memory, kind_of_growth(event.loop)),
            trace=(*value.origin, *event.trace, *cause(event)),
            fix=cut_plan(event.cut, as_number=facts.scalar_fix == "item" and value.size == "scalar"),
        )


def _is_proven(event: Retain) -> bool:
    """Whether the value surely has a graph that nothing needs: a backward has freed it on every path, or it is a loss.
    Other results of models and helpers often turn out to be labels, words or counts."""
    value = event.value
    return (value.freed == "yes" and value.attached == "yes") or (value.size == "scalar" and value.freed != "some")


def _cost(event: Retain) -> tuple[Severity, Memory, str]:
    """The severity, memory and text of the cost, by how much of the graph a backward has freed at the end of an
    iteration."""
    value = event.value
    where = "host" if value.graph_device == "cpu" else "device"
    kept = weight(event, most=META.severity)
    if value.freed in ("no", "some"):
        memory: Memory = "host" if where == "host" else "device-graph"
        some = "where no backward() runs, " if value.freed == "some" else ""
        tensor = ", host memory by the tensor," if value.moved else ""
        cost = f"{some}{where} memory grows by the saved activations of a forward pass{tensor}"
        return kept.activations, memory, cost
    freed = "backward() frees its saved activations, " if value.freed == "yes" else ""
    large = value.size in LARGE and value.weight != "small"
    if large and value.device == "cpu":
        return kept.nodes, "host", f"{freed}host memory grows by the tensor and its nodes"
    if large:
        return (
            kept.activations,
            "device-tensor",
            f"{freed}device memory grows by the tensor, host memory by its nodes",
        )
    small = "512 B" if value.size == "scalar" else "a small tensor" if value.weight == "small" else ""
    block = f", device memory by {small}," if small and value.device != "cpu" else ""
    return kept.nodes, "host", f"{freed}host memory grows by its nodes{block}"


def _help(event: Retain) -> str:
    text = event.value.text
    if event.cut is not None and len(event.cut.sites) == 1:
        text = event.cut.text
    elif text.startswith(("(", "[", "{")):
        return "detach the tensors in it before they are stored (`.detach()`)"
    elif event.value.several:
        return f"detach each tensor in `{text}` before it is stored (`.detach()`)"
    if event.value.moved:
        kept = as_number(text) if event.value.size == "scalar" else detached(text)
        return f"store `{kept}`{leaves_graph(event.value)}"
    if event.value.size == "scalar":
        return f"store `{as_number(text)}`, or `{detached(text)}` to avoid a device synchronization"
    kept = detached(text)
    if event.value.size in LARGE and event.value.device != "cpu":
        kept = f"{kept}.cpu()"
    return f"store `{kept}`"
