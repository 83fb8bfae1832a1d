"""MEM104: tensors without a graph that are collected on the accelerator for a whole epoch."""

from __future__ import annotations

import re
from collections.abc import Iterator

from memlint.sdk import (
    After,
    Facts,
    Growth,
    Loop,
    Meta,
    Plan,
    Report,
    Retain,
    Severity,
    Silent,
    Value,
    cause,
    each_round,
    grouped,
    silent,
    weakest,
)

META = Meta(
    code="MEM104",
    name="retained-device-tensor",
    summary="Tensors of batch size or larger are collected on the accelerator, batch after batch.",
    severity="warning",
)

#: ``features.to(device)``, ``features.cuda()``
_PUT = re.compile(r"\.(cuda\(\w*\)|to\([\w.]*device\w*\))$")

#: a loop with fewer iterations than this, by a literal, bounds what is stored
FEW_ROUNDS = 10
#: names of the items of a loop over data
_BATCH = re.compile(r"batch|data|tensors|inputs|samples|images")


SEEKS = "a tensor of batch size without a graph, on the accelerator, that a loop over batches collects"
CANDIDATES = ("tensor",)

SILENT = (
    Silent(
        Retain,
        "has-a-graph",
        "`{event.value.text}` has an autograd graph, or may have one: MEM102 is about such values",
        lambda event: event.value.attached != "no",
    ),
    Silent(
        Retain,
        "not-on-accelerator",
        "`{event.value.text}` is not known to be on the accelerator (device: {event.value.device})",
        lambda event: event.value.device not in ("accelerator", "likely"),
    ),
    Silent(
        Retain,
        "small",
        "`{event.value.text}` is not known to be of batch size or larger (size: {event.value.size})",
        lambda event: event.value.size not in ("batch", "activation") and event.value.weight != "large",
    ),
    Silent(
        Retain,
        "not-each-batch",
        "nothing tells that each round of `{event.loop.text}` brings a batch",
        lambda event: not (_every_batch(event) or _generates(event)),
    ),
)


def check(facts: Facts) -> Iterator[Report]:
    for event in facts.of(Retain):
        if silent(event, SILENT) is not None:
            continue
        value = event.value
        yield Report(
            site=event.site,
            message=f"`{event.place.text}` keeps `{value.text}` on {_where(value.device)}: device memory grows by "
            f"{_batch(value.size)} with {each_round(event.loop)}",
            help=f"move {_to_host(value)}, or store only the numbers that are needed",
            # a buffer that is emptied in some iterations (cached micro-batches) is usually intended
            confidence="low" if event.reset else weakest(event.certainty, value.certainty),
            severity=_severity(event),
            growth=Growth("device-tensor", "per-iteration"),
            trace=(*value.origin, *event.trace, *cause(event)),
            fix=_fix(event),
        )


def _fix(event: Retain) -> Plan | None:
    cut = event.cut
    if cut is None or cut.met:
        return None
    return Plan(
        title=f"move `{cut.text}` to the host",
        changes=tuple(After(site, ".cpu()") for site in cut.sites),
        doubt=cut.doubt or "later computations with it run on the host",
    )


def _severity(event: Retain) -> Severity:
    """A warning if a sample is known to be large, as batches of one sample are often small. Tensors that the code
    explicitly moves to the device are intended there. A loop that is not over a loader, or that slices batches from a
    tensor, may have few iterations; a model may be on the host if nothing says where it is."""
    value, loop = event.value, event.loop
    unsure = loop.single or loop.batches or not _of_loader(loop) or value.device == "likely" or value.weight != "large"
    return "note" if unsure or _PUT.search(value.text) else "warning"


def _where(device: str) -> str:
    return "the device" if device == "accelerator" else "the model's device"


def _to_host(value: Value) -> str:
    if value.text.startswith(("(", "[", "{")):
        return "its tensors to the host first (`.cpu()`)"
    if value.several:
        return f"each tensor in `{value.text}` to the host first (`.cpu()`)"
    return f"it to the host first (`{grouped(value.text)}.cpu()`)"


def _every_batch(event: Retain) -> bool:
    """Whether each iteration brings a batch: by the loop's iterable, or by names if the loop trains on them or all are
    moved in the end."""
    loop = event.loop
    named = loop.kind == "for" and loop.over == "unknown" and _BATCH.search(loop.text.partition(" in ")[0].lower())
    return _of_loader(loop) or ((event.value.moved_later or loop.trains) and (bool(named) or loop.batches))


def _generates(event: Retain) -> bool:
    """Whether each iteration of ``for _ in range(n)`` stores a model's output on the device: a sampler, a rollout. A
    small literal count bounds it."""
    loop, value = event.loop, event.value
    many = loop.trips is None or loop.trips >= FEW_ROUNDS
    counted = loop.kind == "for" and loop.source.startswith("range(") and many
    return counted and value.size == "activation" and value.device == "accelerator" and value.weight != "small"


def _of_loader(loop: Loop) -> bool:
    return loop.over == "loader" or loop.kind == "calls"


def _batch(size: str) -> str:
    return "an activation" if size == "activation" else "a tensor of batch size"
