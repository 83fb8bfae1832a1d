"""MEM503: a reading of memory that says something else than it is taken for."""

from __future__ import annotations

from collections.abc import Iterator

from memlint.sdk import Facts, Growth, Meta, Report, WrongReading

META = Meta(
    code="MEM503",
    name="wrong-leak-check",
    summary="A reading of memory is taken for another, so that it shows leaks where none are, or none where they are.",
    severity="note",
)

#: what each reading is, and what to read instead
SAYS = {
    "objects": (
        "counts allocations less deallocations since the last collection, and starts anew with each, so it is no "
        "number of objects (`{label}`)",
        "count them by `len(gc.get_objects())`, or the tensors among them by `isinstance(x, torch.Tensor)`",
    ),
    "tensor": (
        "is the size of the Python object, some 80 bytes whatever `{label}` holds",
        "read `{label}.element_size() * {label}.nelement()`; `{label}.untyped_storage().nbytes()` counts its base",
    ),
    "module": (
        "is the size of the Python object, some 50 bytes whatever `{label}` holds",
        "sum `p.element_size() * p.nelement()` over its `parameters()` and `buffers()`",
    ),
    "used": (
        "is what the allocator has taken from the driver, with the blocks that are free again: it does not fall when "
        "tensors go, and `{label}` says more than they use",
        "read `torch.cuda.memory_allocated()` (`max_memory_allocated()` for the peak) for what tensors use",
    ),
    "apart": (
        "counts what tensors use twice: what is reserved is that, and the free blocks that the allocator keeps",
        "read `torch.cuda.memory_reserved()` alone",
    ),
    "bytes": (
        "is how much of the time the device's memory was read or written, in percent, and no number of bytes "
        "(`{label}`)",
        "read `torch.cuda.memory_allocated()`, or `torch.cuda.device_memory_used()` for all processes",
    ),
}


def check(facts: Facts) -> Iterator[Report]:
    for event in facts.of(WrongReading):
        says, advice = SAYS[event.taken_for]
        yield Report(
            site=event.site,
            message=f"`{event.text}` {says.format(label=event.label)}",
            advice=advice.format(label=event.label),
            severity="note",
            confidence=event.certainty,
            growth=Growth("none", "once"),
            trace=event.trace,
        )
