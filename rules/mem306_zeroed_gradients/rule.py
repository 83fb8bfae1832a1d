"""MEM306: gradients are filled with zeros, and so are there during the next forward."""

from __future__ import annotations

from collections.abc import Iterator

from memlint.sdk import Facts, Growth, Meta, Plan, Replace, Report, ZeroedGradients

META = Meta(
    code="MEM306",
    name="zeroed-gradients",
    summary="Gradients are filled with zeros instead of let go, and take their memory through the next forward.",
    severity="note",
)

DOUBT = (
    "a parameter that gets no gradient in a step is then passed over, where zeros let momentum and weight decay change "
    "it, and who reads `.grad` before the next backward finds None"
)


def check(facts: Facts) -> Iterator[Report]:
    for event in facts.of(ZeroedGradients):
        yield Report(
            site=event.site,
            message=f"`{event.text}` fills the gradients with zeros: they take as much memory as the parameters all "
            "through the next forward, where nobody needs them",
            advice="leave `set_to_none` at True, which lets them go"
            if event.flag is not None
            else f"call `{event.owner}.zero_grad()`, which lets them go (`set_to_none=True` before torch 2.0)",
            severity="note",
            confidence=event.certainty,
            growth=Growth("device-tensor", "peak"),
            trace=event.trace,
            fix=_fix(event),
        )


def _fix(event: ZeroedGradients) -> Plan | None:
    if event.flag is None:
        return None
    return Plan(title="let the gradients go", changes=(Replace(event.flag, "True"),), doubt=DOUBT)
