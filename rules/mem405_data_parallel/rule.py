"""MEM405: one process trains on several devices, and the first of them holds all outputs."""

from __future__ import annotations

from collections.abc import Iterator

from memlint.sdk import Event, Facts, Growth, Meta, Report

META = Meta(
    code="MEM405",
    name="data-parallel",
    summary="One process trains on several devices: the first holds the outputs of all, which bounds the batch.",
    severity="note",
)


class SingleProcess(Event, frozen=True, gc=False, kw_only=True):
    """One process replicates a trained model over several devices (``DataParallel``). ``text``: the call."""

    text: str


HELP = "use `DistributedDataParallel`, one process per device: each keeps the outputs of its own samples"


def check(facts: Facts) -> Iterator[Report]:
    for event in facts.of(SingleProcess):
        yield Report(
            site=event.site,
            message=f"`{event.text}` gathers the outputs of all devices on the first one, which alone keeps the "
            "gradients and the optimizer state: its memory bounds the batch size",
            help=HELP,
            severity="note",
            confidence=event.certainty,
            growth=Growth("device-tensor", "peak"),
            trace=event.trace,
        )
