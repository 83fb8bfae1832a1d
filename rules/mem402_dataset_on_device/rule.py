"""MEM402: a whole data set is on the device."""

from __future__ import annotations

from collections.abc import Iterator

from memlint.sdk import Event, Facts, Growth, Meta, Report

META = Meta(
    code="MEM402",
    name="dataset-on-device",
    summary="A whole dataset is moved to the device, where all its samples stay beside the model.",
    severity="note",
)


class DeviceData(Event, frozen=True, gc=False, kw_only=True):
    """All samples of a data set are on the device from its creation. ``place``: what holds them; ``owner``: the class
    of the data set, "" for one of the library."""

    place: str
    owner: str


HELP = (
    "keep the samples on the host and move each batch: `DataLoader(…, pin_memory=True)` and "
    "`batch.to(device, non_blocking=True)`"
)


def check(facts: Facts) -> Iterator[Report]:
    for event in facts.of(DeviceData):
        of = f" of `{event.owner}`" if event.owner else ""
        yield Report(
            site=event.site,
            message=f"`{event.place}` puts all samples{of} on the device at once: they stay in device memory beside "
            "the model, though it needs one batch at a time",
            help=HELP,
            severity="note",
            confidence=event.certainty,
            growth=Growth("device-tensor", "once"),
            trace=event.trace,
        )
