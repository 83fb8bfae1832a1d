"""MEM401: a batch of the size of the data set, or whose literal shape exceeds the device."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from memlint.sdk import Event, Facts, Growth, Meta, Report

META = Meta(
    code="MEM401",
    name="oversized-batch",
    summary="A whole dataset goes through the device as one batch, or a literal shape exceeds its memory.",
    severity="warning",
)


class OversizedBatch(Event, frozen=True, gc=False, kw_only=True):
    """``kind``: loader (batch_size is the length of the data set), whole (a whole data set in one model call), literal
    (a literal shape). ``bytes``: the size of a literal shape, else None."""

    kind: Literal["loader", "whole", "literal"]
    text: str
    bytes: int | None


def check(facts: Facts) -> Iterator[Report]:
    for event in facts.of(OversizedBatch):
        message = _message(event, facts.device_memory)
        if message is None:
            continue
        yield Report(
            site=event.site,
            message=message,
            help="use a batch size that does not depend on the amount of data",
            # no code tells whether a data set is, and stays, small enough
            severity="warning" if event.bytes is not None else "note",
            confidence=event.certainty,
            growth=Growth("device-tensor", "peak"),
            trace=event.trace,
        )


def _message(event: OversizedBatch, device_memory: int | None) -> str | None:
    if event.kind == "loader":
        return f"`{event.text}` makes one batch of the whole data set: the peak grows with the number of samples"
    if event.kind == "whole":
        return f"`{event.text}` runs the model on a whole data set at once: the peak grows with the number of samples"
    if event.bytes is None or device_memory is None or event.bytes <= device_memory:
        return None
    return (
        f"`{event.text}` alone needs {event.bytes / 2**30:.1f} GiB of device memory, more than the "
        f"{device_memory / 2**30:.1f} GiB that `device-memory` configures"
    )
