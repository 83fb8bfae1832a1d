"""MEM114: small views that are collected keep the large storages that they look into."""

from __future__ import annotations

from collections.abc import Iterator

from memlint.sdk import After, Facts, Growth, Meta, PinnedStorage, Plan, Report, each_round

META = Meta(
    code="MEM114",
    name="view-pins-storage",
    summary="A small view of a large tensor is stored, and keeps the whole storage of the tensor.",
    severity="note",
    preview=True,
)


def check(facts: Facts) -> Iterator[Report]:
    for event in facts.of(PinnedStorage):
        copy = ".copy()" if event.array else ".clone()"
        yield Report(
            site=event.site,
            message=f"`{event.view}` is a view: `{event.place}` keeps the whole storage of `{event.base}`, by which "
            f"{'host' if event.on_host else 'device'} memory grows with {each_round(event.loop)}",
            help=f"copy the part that is kept (`{copy}`), so that the rest can be freed",
            severity="note",
            confidence=event.certainty,
            growth=Growth("host" if event.on_host else "device-tensor", "per-iteration"),
            trace=event.trace,
            fix=Plan(
                title=f"copy the kept part of `{event.base}`",
                changes=(After(event.stored, copy),),
                doubt="later writes to the whole tensor would show in the view, and do not in the copy",
            ),
        )
