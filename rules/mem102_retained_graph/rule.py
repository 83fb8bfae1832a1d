"""MEM102: values that carry an autograd graph, stored in something that outlives the iteration."""

from __future__ import annotations

from collections.abc import Iterator

from memlint.sdk import Facts, Growth, Loop, Memory, Meta, Report, Retain, Severity, cut_plan, weakest

META = Meta(
    code="MEM102",
    name="retained-graph",
    summary="A tensor is stored together with its autograd graph in something that outlives the iteration.",
    severity="error",
)

LARGE = ("batch", "activation", "model")


def check(facts: Facts) -> Iterator[Report]:
    for event in facts.of(Retain):
        value = event.value
        if event.needed or value.attached not in ("yes", "some"):
            continue
        severity, memory, cost = _cost(event)
        yield Report(
            site=event.site,
            message=f"`{event.place.text}` keeps `{value.text}` and its autograd graph: {cost} with "
            f"{_each(event.loop)}{_until(event.reset)}{_cause(event)}",
            advice=_advice(event),
            severity=severity,
            confidence=weakest(event.certainty, value.certainty),
            growth=Growth(memory, "per-epoch" if event.loop.every == "epoch" else "per-iteration"),
            trace=(*value.origin, *event.trace),
            fix=cut_plan(event.cut, as_number=facts.scalar_fix == "item" and value.size == "scalar"),
        )


def _cost(event: Retain) -> tuple[Severity, Memory, str]:
    """What the store costs, by what backward() has freed of the graph at the end of an iteration."""
    value = event.value
    where = "host" if value.device == "cpu" else "device"
    # (the host has more memory than the device; the steps of a sequence, or a handful of parts, end, and where the
    # model should not record at all, MEM201 says so at its call)
    bounded = bool(event.reset) or value.device == "cpu" or not event.loop.over_data
    passing = event.loop.ends and (event.place.kind in ("local", "parameter") or event.in_model_loop)
    severity: Severity = "note" if passing else "warning" if bounded else "error"
    if value.freed in ("no", "some"):
        memory: Memory = "host" if value.device == "cpu" else "device-graph"
        what = "a whole forward pass" if value.freed == "no" else "each iteration that no backward() frees"
        return severity, memory, f"{where} memory grows by the saved activations of {what}"
    freed = "backward() frees its saved activations, but " if value.freed == "yes" else ""
    if value.size in LARGE and value.device != "cpu":
        return severity, "device-tensor", f"{freed}device memory grows by the tensor, host memory by the graph's nodes"
    block = " and device memory by a block of 512 B" if value.size == "scalar" and value.device != "cpu" else ""
    small = event.loop.every == "epoch" or bool(event.reset) or passing
    return "note" if small else "warning", "host", f"{freed}host memory grows by the graph's nodes{block}"


def _advice(event: Retain) -> str:
    text = event.value.text
    if event.cut is not None and len(event.cut.sites) == 1:
        text = event.cut.text
    elif text.startswith(("(", "[", "{")):
        return "store the tensors in it detached (`.detach()`) if only their values are needed later"
    name = text if text.replace(".", "").isidentifier() else f"({text})"
    if event.value.size == "scalar":
        return f"store `{name}.item()`, or `{name}.detach()` to avoid waiting for the device"
    if event.value.size in LARGE:
        return f"store `{name}.detach().cpu()` if only the values are needed later"
    return f"store `{name}.detach()` if only the values are needed later"


def _cause(event: Retain) -> str:
    if not event.in_model_loop:
        return ""
    return "; the graph is there because the model runs without torch.no_grad() (MEM201 at the call)"


def _until(reset: str) -> str:
    return f", until {reset}" if reset else ""


def _each(loop: Loop) -> str:
    return loop.text if loop.kind == "calls" else f"each iteration of `{loop.text}`"
