"""MEM405: one process trains on several devices, and the first of them holds what comes of all."""

from __future__ import annotations

from collections.abc import Iterator

from memlint.sdk import Facts, Growth, Meta, Report, SingleProcess

META = Meta(
    code="MEM405",
    name="data-parallel",
    summary="One process trains on several devices: the first holds the outputs of all, which bounds the batch.",
    severity="note",
    preview=True,
)

ADVICE = "use `DistributedDataParallel`, one process for each device: each keeps what its own samples need"


def check(facts: Facts) -> Iterator[Report]:
    for event in facts.of(SingleProcess):
        yield Report(
            site=event.site,
            message=f"`{event.text}` gathers on the first device what the model returns on all of them, beside the "
            "gradients and the optimizer's state, which no other keeps: its memory bounds the batch",
            advice=ADVICE,
            severity="note",
            confidence=event.certainty,
            growth=Growth("device-tensor", "peak"),
            trace=event.trace,
        )
