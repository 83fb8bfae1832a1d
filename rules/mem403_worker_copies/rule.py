"""MEM403: worker processes copy what a data set holds as Python objects, by reading it."""

from __future__ import annotations

from collections.abc import Iterator

from memlint.sdk import Facts, Growth, Meta, Report, WorkerCopies

META = Meta(
    code="MEM403",
    name="worker-copies",
    summary="A data set of many small Python objects is read by worker processes, each of which comes to own a copy.",
    severity="note",
    preview=True,
)

HELP = (
    "store the records in a few arrays (numpy, pyarrow, or one buffer of serialized records and their offsets), whose "
    "memory the workers share"
)


def check(facts: Facts) -> Iterator[Report]:
    for event in facts.of(WorkerCopies):
        held = "an index of all annotations" if event.annotations else "a list or dict of records"
        yield Report(
            site=event.site,
            message=f"`{event.place}` of `{event.owner}` is {held}: reading its objects writes their reference counts, "
            "so host memory grows by a copy in each DataLoader worker",
            help=HELP,
            severity="note",
            confidence=event.certainty,
            growth=Growth("host", "once"),
            trace=event.trace,
        )
