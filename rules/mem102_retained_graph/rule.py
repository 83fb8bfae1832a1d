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
    cause,
    cut_plan,
    each_round,
    grouped,
    kind_of_growth,
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
    """Whether it is beyond doubt that what is kept has a graph, and that nobody needs it: a backward has freed it on
    every way, or it is a loss. Of what else models and helpers give, much turns out to be labels, words or counts."""
    value = event.value
    return (value.freed == "yes" and value.attached == "yes") or (value.size == "scalar" and value.freed != "some")


def _cost(event: Retain) -> tuple[Severity, Memory, str]:
    """What the store costs, by what backward() has freed of the graph at the end of an iteration."""
    value = event.value
    where = "host" if value.device == "cpu" else "device"
    kept = weight(event, most=META.severity)
    if value.freed in ("no", "some"):
        memory: Memory = "host" if value.device == "cpu" else "device-graph"
        some = "where no backward() runs, " if value.freed == "some" else ""
        return kept.activations, memory, f"{some}{where} memory grows by the saved activations of a forward pass"
    freed = "backward() frees its saved activations, " if value.freed == "yes" else ""
    if value.size in LARGE and value.weight != "small" and value.device != "cpu":
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
    name = grouped(text)
    if event.value.size == "scalar":
        return f"store `{name}.item()`, or `{name}.detach()` to avoid a device synchronization"
    if event.value.size in LARGE:
        return f"store `{name}.detach().cpu()`"
    return f"store `{name}.detach()`"
