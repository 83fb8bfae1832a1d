"""MEM407: the step of a large model's optimizer makes temporaries of all parameters at once."""

from __future__ import annotations

from collections.abc import Iterator

from memlint.sdk import Facts, Growth, Meta, Report, StepTemporaries

META = Meta(
    code="MEM407",
    name="optimizer-temporaries",
    summary="The optimizer of a large model steps by foreach operations, whose temporaries are as large as the model.",
    severity="warning",
    preview=True,
)
#: bytes of temporaries that are worth a warning
_LARGE = 4 << 30
#: of a device's memory, what is not worth a word
_SMALL_PART = 50


def check(facts: Facts) -> Iterator[Report]:
    for event in facts.of(StepTemporaries):
        if facts.device_memory is not None and event.bytes * _SMALL_PART < facts.device_memory:
            continue
        yield Report(
            site=event.site,
            message=f"a step of `{event.text}` makes temporaries as large as all parameters of `{event.model}`: the "
            f"peak rises by about {event.bytes / 2**30:.1f} GiB of device memory (`foreach`, the default)",
            help="pass `fused=True`, which needs none and is as fast, or `foreach=False`, which needs those of one "
            "parameter at a time",
            severity="warning" if event.bytes >= _LARGE else "note",
            confidence=event.certainty,
            growth=Growth("device-tensor", "peak"),
            trace=event.trace,
        )
