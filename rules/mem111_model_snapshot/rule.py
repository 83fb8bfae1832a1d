"""MEM111: copies of the model, or of its state, are stored on the device."""

from __future__ import annotations

from collections.abc import Iterator

from memlint.sdk import Event, Facts, Growth, Loop, Meta, Report, each_round

META = Meta(
    code="MEM111",
    name="model-snapshot",
    summary="A copy of the model or of its state is kept on the device, for the best epoch or for every epoch.",
    severity="warning",
)


class ModelSnapshot(Event, frozen=True, gc=False, kw_only=True):
    """A copy of a model, or of its state, is stored on the model's device. ``loop``: the loop over epochs in which
    ``place``, a container of such copies, grows; None for a single copy of the best so far, or for one (``once``) that
    is restored after a trial."""

    text: str
    model: str
    place: str
    loop: Loop | None
    once: bool = False


def check(facts: Facts) -> Iterator[Report]:
    for event in facts.of(ModelSnapshot):
        if event.loop is not None:
            each = each_round(event.loop)
            message = (
                f"`{event.place}` gets a copy of all parameters of `{event.model}` on the device: device memory grows "
                f"by a model with {each}"
            )
        elif event.once:
            message = (
                f"`{event.text}` keeps a second `{event.model}` in device memory until it is loaded back, and no "
                "computation uses it there"
            )
        else:
            message = (
                f"`{event.text}` keeps a second `{event.model}` in device memory beside the trained one, and a third "
                "one while it is replaced"
            )
        yield Report(
            site=event.site,
            message=message,
            help=f"keep the copy on the host: `{_on_host(event)}`, or save it to a file",
            severity="note" if event.loop is None else "warning",
            confidence=event.certainty,
            growth=Growth("device-tensor", "once" if event.loop is None else "per-epoch"),
            trace=event.trace,
        )


def _on_host(event: ModelSnapshot) -> str:
    return f'{{k: v.to("cpu", copy=True) for k, v in {event.model}.state_dict().items()}}'
