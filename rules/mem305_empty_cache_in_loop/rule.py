"""MEM305: the allocator's cache is emptied in every iteration of a loop."""

from __future__ import annotations

from collections.abc import Iterator

from memlint.sdk import Event, Facts, Growth, Loop, Meta, Plan, Remove, Replace, Report, Site, each_round, weakest

META = Meta(
    code="MEM305",
    name="empty-cache-in-loop",
    summary="The allocator cache is emptied in every iteration, which saves no memory and waits for the device.",
    severity="note",
)


class EmptiedCache(Event, frozen=True, gc=False, kw_only=True):
    """The allocator's cache is emptied in every iteration of a loop. ``data``: the loop iterates over a loader, or
    trains. ``statement``: what empties it, None for a helper that does; ``alone``: nothing else is in its block;
    ``flag``: a setting that must hold ("" for none)."""

    text: str
    loop: Loop
    data: bool
    flag: str
    statement: Site | None
    alone: bool


DOUBT = "other processes on the device may need the memory that it releases"


def check(facts: Facts) -> Iterator[Report]:
    for event in facts.of(EmptiedCache):
        where = f" where `{event.flag}` holds" if event.flag else ""
        yield Report(
            site=event.site,
            message=f"`{event.text}` runs in {each_round(event.loop)}{where}: it frees no tensor in use, and the next "
            "iteration has to allocate the freed blocks again, which waits for the device",
            help="remove it, or call it once after the loop if other processes need the memory",
            severity="note",
            # elsewhere it is not certain that each iteration takes a batch, or reaches the call
            confidence=event.certainty if event.data and not event.flag else weakest(event.certainty, "medium"),
            growth=Growth("none", "time"),
            trace=event.trace,
            fix=_fix(event),
        )


def _fix(event: EmptiedCache) -> Plan | None:
    if event.statement is None:
        return None
    change = Replace(event.statement, "pass") if event.alone else Remove(event.statement)
    return Plan(title=f"remove `{event.text}`", changes=(change,), doubt=DOUBT)
