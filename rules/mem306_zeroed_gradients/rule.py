"""MEM306: gradients are filled with zeros, and so take memory during the next forward."""

from __future__ import annotations

from collections.abc import Iterator

from memlint.sdk import Event, Facts, Growth, Meta, Plan, Replace, Report, Site

META = Meta(
    code="MEM306",
    name="zeroed-gradients",
    summary="Gradients are filled with zeros instead of freed, and take their memory during the next forward.",
    severity="note",
)


class ZeroedGradients(Event, frozen=True, gc=False, kw_only=True):
    """Gradients are filled with zeros before a forward, although they could be released. ``text``: the statement;
    ``owner``: the object whose ``zero_grad`` would do; ``flag``: the ``False`` of ``set_to_none=False``, None if it is
    done by hand."""

    text: str
    owner: str
    flag: Site | None


DOUBT = (
    "the optimizer then skips a parameter without a gradient, where zeros still apply momentum and weight decay, and "
    "`.grad` is None until the next backward()"
)


def check(facts: Facts) -> Iterator[Report]:
    for event in facts.of(ZeroedGradients):
        yield Report(
            site=event.site,
            message=f"`{event.text}` fills the gradients with zeros: they take as much device memory as the parameters "
            "during the next forward pass, where nothing needs them",
            help="leave `set_to_none` at True, which frees them"
            if event.flag is not None
            else f"call `{event.owner}.zero_grad()`, which frees them (`set_to_none=True` before torch 2.0)",
            severity="note",
            confidence=event.certainty,
            growth=Growth("device-tensor", "peak"),
            trace=event.trace,
            fix=_fix(event),
        )


def _fix(event: ZeroedGradients) -> Plan | None:
    if event.flag is None:
        return None
    return Plan(title="free the gradients instead", changes=(Replace(event.flag, "True"),), doubt=DOUBT)
