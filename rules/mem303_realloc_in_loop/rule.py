"""MEM303: tensors of constant shape made anew in a hot loop, or made on the host and moved."""

from __future__ import annotations

from collections.abc import Iterator

from memlint.sdk import Allocate, Argument, Around, Facts, Growth, Meta, Plan, Report, each_round

META = Meta(
    code="MEM303",
    name="realloc-in-loop",
    summary="A tensor is made on the host and moved, or made again with the same contents, in every iteration.",
    severity="note",
    preview=True,
)


def check(facts: Facts) -> Iterator[Report]:
    for event in facts.of(Allocate):
        if event.loop is None:
            continue
        if event.moved:
            yield _report(
                event,
                f"`{event.factory}` fills a tensor on the host and `{event.moved}` copies it to the device with "
                f"{each_round(event.loop)}: no memory is kept, but it is many times slower than creating it there",
                f"create it on the device: pass `device=` to `{event.factory}`",
            )
        elif event.constant == "yes" and event.mutated == "no" and event.kept == "no":
            yield _report(
                event,
                f"`{event.factory}` creates the same tensor with {each_round(event.loop)}: no memory is kept, but each "
                "one is allocated and filled again",
                "create it once before the loop",
            )


def _report(event: Allocate, message: str, advice: str) -> Report:
    return Report(
        site=event.site,
        message=message,
        help=advice,
        severity="note",
        confidence=event.certainty,
        growth=Growth("none", "time"),
        trace=event.trace,
        fix=_fix(event),
    )


def _fix(event: Allocate) -> Plan | None:
    if event.move is None:
        return None
    changes = (Argument(event.site, f"device={event.device}"), Around(event.site, event.move))
    return Plan(title=f"pass `device={event.device}` to `{event.factory}`", changes=changes, doubt=event.doubt)
