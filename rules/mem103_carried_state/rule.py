"""MEM103: state that is rebuilt from its own previous value, with a graph that reaches back through all iterations."""

from __future__ import annotations

from collections.abc import Iterator

from memlint.sdk import After, Carry, Change, Facts, Growth, Loop, Memory, Meta, Plan, Report, Severity, Top, weakest

META = Meta(
    code="MEM103",
    name="carried-state",
    summary="A state is computed from its own previous value, so its autograd graph grows with every iteration.",
    severity="error",
)

LARGE = ("sample", "batch", "activation", "model")


def check(facts: Facts) -> Iterator[Report]:
    for event in facts.of(Carry):
        value = event.value
        if event.needed or value.attached not in ("yes", "some") or not _is_state(event):
            continue
        severity, memory, cost = _cost(event)
        yield Report(
            site=event.site,
            message=f"`{event.place.text}` is computed from its own previous value, so its autograd graph reaches back "
            f"through all earlier iterations: {cost} with {_each(event.loop)}{_until(event.reset)}{_cause(event)}",
            advice=_advice(event),
            severity=severity,
            confidence=weakest(event.certainty, value.certainty),
            growth=Growth(memory, "per-epoch" if event.loop.every == "epoch" else "per-iteration"),
            trace=(*value.origin, *event.trace),
            fix=_fix(event),
        )


def _is_state(event: Carry) -> bool:
    if event.how == "add":
        return event.value.size in LARGE
    return event.how in ("average", "call", "update")


def _cost(event: Carry) -> tuple[Severity, Memory, str]:
    value = event.value
    where = "host" if value.device == "cpu" else "device"
    memory: Memory = "host" if value.device == "cpu" else "device-graph"
    # (the host has more memory than the device; the steps of a sequence, or a handful of parts, end, and where the
    # model should not record at all, MEM201 says so at its call)
    bounded = bool(event.reset) or value.device == "cpu" or not event.loop.over_data
    passing = event.loop.ends and (event.place.kind in ("local", "parameter") or event.in_model_loop)
    severity: Severity = "note" if passing else "warning" if bounded else "error"
    if value.freed == "no":
        return severity, memory, f"{where} memory grows by the activations that one iteration saves"
    if value.freed == "some":
        return severity, memory, f"{where} memory grows by the activations that no backward() frees"
    if event.how == "call" and value.freed == "yes":
        return (
            "note" if passing else "warning",
            "host",
            "a plain backward() that reaches it raises in the second iteration, retain_graph=True keeps the saved "
            "activations of all iterations, and host memory grows by the graph's nodes",
        )
    freed = "backward() frees what it saved, but " if value.freed == "yes" else ""
    small = event.loop.every == "epoch" or bool(event.reset) or passing
    return "note" if small else "warning", "host", f"{freed}host memory grows by the graph's nodes"


def _advice(event: Carry) -> str:
    name = event.place.text
    if event.in_model_loop:
        return "run the loop under `with torch.no_grad():`"
    if event.how == "call":
        return f"detach `{name}` at the start of each iteration (`{name} = {name}.detach()`; each tensor of a tuple)"
    return f"update `{name}` under `with torch.no_grad():`, or from `.detach()`ed values"


def _fix(event: Carry) -> Plan | None:
    cut = event.cut
    if cut is None:
        return None
    if cut.sites:
        changes: tuple[Change, ...] = tuple(After(site, ".detach()") for site in cut.sites)
        return Plan(title=f"detach `{cut.text}`", changes=changes, doubt=cut.doubt)
    start = Top(event.loop.site, cut.start)
    return Plan(title=f"detach `{cut.text}` when an iteration begins", changes=(start,), doubt=cut.doubt)


def _cause(event: Carry) -> str:
    if not event.in_model_loop:
        return ""
    return "; the graph is there because the model runs without torch.no_grad() (MEM201 at the call)"


def _until(reset: str) -> str:
    return f", until {reset}" if reset else ""


def _each(loop: Loop) -> str:
    return loop.text if loop.kind == "calls" else f"each iteration of `{loop.text}`"
