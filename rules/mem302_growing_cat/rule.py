"""MEM302: a tensor that is grown by concatenating onto itself."""

from __future__ import annotations

from collections.abc import Iterator

from memlint.sdk import Around, Carry, Facts, Growth, Line, Loop, Memory, Meta, Plan, Report, Severity, weakest

META = Meta(
    code="MEM302",
    name="growing-cat",
    summary="A tensor is grown by cat or stack onto itself in a loop, which copies all of it each time.",
    severity="error",
)

LARGE = ("batch", "activation", "model")


def check(facts: Facts) -> Iterator[Report]:
    for event in facts.of(Carry):
        if event.how != "cat":
            continue
        graph = _keeps_graph(event)
        extra = ", and it keeps the autograd graph of every part" if graph else ""
        if graph and event.in_model_loop:
            extra += ", because the model runs without torch.no_grad() (MEM201 at the call)"
        yield Report(
            site=event.site,
            message=f"`{event.place.text}` is copied whole with {_each(event.loop)}, the old and the new one alive "
            f"together: the peak is near twice the result and the time quadratic{extra}",
            advice=_advice(event, graph),
            severity=_severity(event, graph),
            confidence=weakest(event.certainty, event.value.certainty) if graph else event.certainty,
            growth=Growth(_memory(event, graph), "per-iteration" if graph else "peak"),
            trace=(*event.value.origin, *event.trace) if graph else event.trace,
            fix=_fix(event),
        )


def _keeps_graph(event: Carry) -> bool:
    return event.value.attached in ("yes", "some") and event.value.freed in ("no", "some") and not event.needed


def _memory(event: Carry, graph: bool) -> Memory:
    if event.value.device == "cpu":
        return "host"
    return "device-graph" if graph else "device-tensor"


def _severity(event: Carry, graph: bool) -> Severity:
    if graph:
        return "error"
    small = event.value.size not in LARGE
    few = event.loop.trips is not None or event.loop.over == "range" or event.bounded
    return "note" if small or few else "warning"


def _fix(event: Carry) -> Plan | None:
    gather = event.gather
    if gather is None:
        return None
    changes = (
        Line(gather.loop, gather.start),
        Around(gather.part, gather.statement, f"{gather.name}.append(", ")"),
        Line(gather.loop, gather.end, behind=True),
    )
    return Plan(title="collect the parts in a list, and concatenate once", changes=changes, doubt=gather.doubt)


def _advice(event: Carry, graph: bool) -> str:
    part = f"{event.value.text}.detach()" if graph else event.value.text
    return f"collect `{part}` in a list and concatenate once after the loop, or write into a tensor allocated before it"


def _each(loop: Loop) -> str:
    return loop.text if loop.kind == "calls" else f"each iteration of `{loop.text}`"
