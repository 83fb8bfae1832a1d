"""MEM204: a backward runs through a network whose gradients are thrown away."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from memlint.sdk import After, Change, Event, Facts, Growth, Loop, Meta, Plan, Report, Site, Step, Under

META = Meta(
    code="MEM204",
    name="discarded-gradients",
    summary="A backward runs through a network whose gradients are cleared before its optimizer steps.",
    severity="warning",
    preview=True,
)
SEEKS = "a backward through a network whose gradients are cleared before they are used"


class DiscardedGradients(Event, frozen=True, gc=False, kw_only=True):
    """A backward runs through a network, and its gradients are cleared before an optimizer uses them.

    ``kind``: alone (nothing else uses the graph of the run), shared (another backward does, so this one keeps it);
    ``network``, ``run``: the network whose gradients are lost, and its call; ``reader``: the network that gets the
    output, by the call ``use``; ``backward``, ``clearing``: the calls; ``cuts``: the expressions to detach;
    ``guarded``: the statement to guard instead; ``differentiated``: a call of ``autograd.grad`` may differentiate with
    regard to the output.
    """

    kind: Literal["alone", "shared"]
    network: str
    run: str
    reader: str
    use: str
    backward: str
    clearing: str
    at: Site
    ran: Site
    cleared: Site
    cuts: tuple[Site, ...] = ()
    guarded: Site | None = None
    loop: Loop | None = None
    small: bool = False
    differentiated: bool = False
    doubt: str = ""


def check(facts: Facts) -> Iterator[Report]:
    for event in facts.of(DiscardedGradients):
        once = event.loop is None and event.function == "<module>"
        yield Report(
            site=event.site,
            message=_message(event),
            help=_help(event),
            severity="note" if event.small or once else "warning",
            confidence=event.certainty,
            growth=Growth("device-graph", "peak"),
            trace=_trace(event),
            fix=_fix(event),
        )


def _message(event: DiscardedGradients) -> str:
    lost = f"`{event.backward}` runs through `{event.network}`, whose gradients `{event.clearing}` clears"
    if event.kind == "alone":
        return f"{lost}: its activations stay in device memory while `{event.reader}` runs forward and backward"
    return f"{lost}: the activations of `{event.use}` stay in device memory beside those of the next run"


def _help(event: DiscardedGradients) -> str:
    if event.guarded is not None:
        return f"call `{event.network}` under `with torch.no_grad():`"
    if event.differentiated:
        return (
            f"detach what `{event.reader}` gets in this step, and call `.requires_grad_()` on what `autograd.grad` "
            "differentiates"
        )
    also = "; no `retain_graph=True` is then needed, unless another backward() uses that graph"
    return f"detach what `{event.reader}` gets in this step" + (also if "retain_graph" in event.backward else "")


def _trace(event: DiscardedGradients) -> tuple[Step, ...]:
    first = () if event.kind == "alone" else (Step(event.ran, f"`{event.network}` records its graph"),)
    return (
        *event.trace,
        *first,
        Step(event.at, "this backward() runs through it"),
        Step(event.cleared, f"its gradients are cleared before the optimizer of `{event.network}` steps"),
    )


def _fix(event: DiscardedGradients) -> Plan | None:
    """The cut, which is never a safe fix: code that is not followed may use the gradients (a base class, a library)."""
    doubt = event.doubt or "code that is not followed may use these gradients"
    if event.guarded is not None:
        under = Under(event.guarded, event.guarded, "with {torch}.no_grad():")
        return Plan(title=f"run `{event.network}` under `no_grad`", changes=(under,), doubt=doubt)
    if not event.cuts:
        return None
    changes: tuple[Change, ...] = tuple(After(site, ".detach()") for site in event.cuts)
    return Plan(title=f"detach what `{event.reader}` gets", changes=changes, doubt=doubt)
