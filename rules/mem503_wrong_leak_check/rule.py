"""MEM503: a misinterpreted memory reading."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from memlint.sdk import Event, Facts, Growth, Meta, Report

META = Meta(
    code="MEM503",
    name="wrong-leak-check",
    summary="A memory reading is used for a quantity that it does not measure, so a leak check gives wrong results.",
    severity="note",
)

#: what a reading is mistaken for: the number of objects, the bytes of a tensor or a module, the memory of tensors, a
#: quantity besides the memory of tensors, bytes at all
Misread = Literal["objects", "tensor", "module", "used", "apart", "bytes"]


class WrongReading(Event, frozen=True, gc=False, kw_only=True):
    """A memory reading is misinterpreted. ``text``: the call; ``label``: its name, or what it is compared with."""

    taken_for: Misread
    text: str
    label: str


#: the meaning of each reading, and what to read instead
SAYS = {
    "objects": (
        "counts allocations minus deallocations since the last garbage collection, not the objects in memory "
        "(`{label}`)",
        "count objects by `len(gc.get_objects())`, tensors among them by `isinstance(x, torch.Tensor)`",
    ),
    "tensor": (
        "is the size of the Python object, about 80 bytes whatever `{label}` holds",
        "read `{label}.element_size() * {label}.nelement()`; its whole storage is `{label}.untyped_storage().nbytes()`",
    ),
    "module": (
        "is the size of the Python object, about 50 bytes whatever `{label}` holds",
        "sum `p.element_size() * p.nelement()` over its `parameters()` and `buffers()`",
    ),
    "used": (
        "is the memory that the allocator has reserved, free blocks included: it does not fall when tensors are freed, "
        "and `{label}` is more than they use",
        "read `torch.cuda.memory_allocated()`, or `max_memory_allocated()` for the peak",
    ),
    "apart": (
        "counts the memory of tensors twice: reserved memory is that plus the free blocks of the allocator",
        "read `torch.cuda.memory_reserved()` alone",
    ),
    "bytes": (
        "is the percentage of time in which device memory was read or written, not a number of bytes (`{label}`)",
        "read `torch.cuda.memory_allocated()`, or `torch.cuda.device_memory_used()` for all processes",
    ),
}


def check(facts: Facts) -> Iterator[Report]:
    for event in facts.of(WrongReading):
        says, advice = SAYS[event.taken_for]
        yield Report(
            site=event.site,
            message=f"`{event.text}` {says.format(label=event.label)}",
            help=advice.format(label=event.label),
            severity="note",
            confidence=event.certainty,
            growth=Growth("none", "once"),
            trace=event.trace,
        )
