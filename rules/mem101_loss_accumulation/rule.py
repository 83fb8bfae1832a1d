"""MEM101: a running sum of losses that keeps the autograd graph of each of them."""

from __future__ import annotations

from collections.abc import Iterator

from memlint.sdk import Carry, Facts, Growth, Loop, Memory, Meta, Report, Severity, cut_plan, weakest

META = Meta(
    code="MEM101",
    name="loss-accumulation",
    summary="A loss is added to a running sum together with its autograd graph.",
    severity="error",
)


def check(facts: Facts) -> Iterator[Report]:
    for event in facts.of(Carry):
        value = event.value
        if event.how != "add" or event.needed:
            continue
        if value.attached not in ("yes", "some") or value.size not in ("scalar", "unknown"):
            continue
        severity, memory, cost = _cost(event)
        yield Report(
            site=event.site,
            message=f"`{event.place.text}` keeps the autograd graph of every `{value.text}` that is added to it: "
            f"{cost} with {_each(event.loop)}{_until(event.reset)}{_cause(event)}",
            advice=_advice(event),
            severity=severity,
            confidence=weakest(event.certainty, value.certainty),
            growth=Growth(memory, "per-epoch" if event.loop.every == "epoch" else "per-iteration"),
            trace=(*value.origin, *event.trace),
            fix=cut_plan(event.cut, as_number=facts.scalar_fix == "item" and value.size == "scalar"),
        )


def _cost(event: Carry) -> tuple[Severity, Memory, str]:
    """What the graph costs, by what backward() has freed of it at the end of an iteration."""
    value = event.value
    where = "host" if value.device == "cpu" else "device"
    memory: Memory = "host" if value.device == "cpu" else "device-graph"
    # (the host has more memory than the device; the steps of a sequence, or a handful of parts, end, and where the
    # model should not record at all, MEM201 says so at its call)
    bounded = bool(event.reset) or value.device == "cpu" or not event.loop.over_data
    passing = event.loop.ends and (event.place.kind in ("local", "parameter") or event.in_model_loop)
    severity: Severity = "note" if passing else "warning" if bounded else "error"
    if value.freed == "no":
        return severity, memory, f"{where} memory grows by the saved activations of a whole forward pass"
    if value.freed == "some":
        return severity, memory, f"{where} memory grows by the saved activations that no backward() frees"
    small = event.loop.every == "epoch" or bool(event.reset) or passing
    freed = "backward() frees its saved activations, but " if value.freed == "yes" else ""
    return "note" if small else "warning", "host", f"{freed}host memory grows by the graph's nodes"


def _advice(event: Carry) -> str:
    text = event.cut.text if event.cut is not None and len(event.cut.sites) == 1 else event.value.text
    name = text if text.isidentifier() else f"({text})"
    if event.value.size == "scalar":
        return f"add `{name}.item()`, or `{name}.detach()` to avoid waiting for the device"
    return f"add `{name}.detach()`, or `{name}.item()` where it holds one number"


def _cause(event: Carry) -> str:
    if not event.in_model_loop:
        return ""
    return "; the graph is there because the model runs without torch.no_grad() (MEM201 at the call)"


def _until(reset: str) -> str:
    return f", until {reset}" if reset else ""


def _each(loop: Loop) -> str:
    return loop.text if loop.kind == "calls" else f"each iteration of `{loop.text}`"
