"""MEM301: a loop-carried tensor without a graph, replaced by a new one where it could be updated in place."""

from __future__ import annotations

from collections.abc import Iterator

from memlint.sdk import (
    Event,
    Fact,
    Facts,
    Growth,
    Loop,
    Meta,
    Plan,
    Replace,
    Report,
    Severity,
    Silent,
    Size,
    Weight,
    each_round,
    silent,
)

META = Meta(
    code="MEM301",
    name="out-of-place-update",
    summary="A tensor is replaced by an updated copy in a hot loop where an in-place update is correct.",
    severity="warning",
)


class Rebind(Event, frozen=True, gc=False, kw_only=True):
    """A loop-carried tensor without a graph is replaced by an out-of-place result. ``op``: its source; ``inplace``: the
    in-place form; ``alone``: no alias needs the old value. ``doubt``: why the in-place form may give another result, a
    clause."""

    op: str
    inplace: str
    target: str
    alone: Fact
    recorded: Fact
    size: Size
    loop: Loop
    doubt: str = ""
    weight: Weight = "unknown"


LARGE = ("activation", "model")
SMALL = ("scalar", "sample")


SEEKS = "a large tensor without a graph that each iteration replaces by an out-of-place result"

SILENT = (
    Silent(Rebind, "recorded", "autograd records `{event.op}`, or may do so", lambda event: event.recorded != "no"),
    Silent(
        Rebind,
        "old-value-in-use",
        "the old value of `{event.target}` is needed elsewhere, or may be",
        lambda event: event.alone != "yes",
    ),
    Silent(Rebind, "small", "`{event.target}` is small (size: {event.size})", lambda event: event.size in SMALL),
)


def check(facts: Facts) -> Iterator[Report]:
    for event in facts.of(Rebind):
        if silent(event, SILENT) is not None:
            continue
        yield Report(
            site=event.site,
            message=f"`{event.op}` makes a new tensor while the old `{event.target}` is alive: "
            f"{each_round(event.loop)} holds both, a peak of 1.5 to 2 times that of the in-place update",
            help=f"update it in place: `{event.inplace}`",
            severity=_severity(event),
            confidence=event.certainty,
            growth=Growth("none", "peak"),
            trace=event.trace,
            fix=_fix(event),
        )


def _severity(event: Rebind) -> Severity:
    large = event.size in LARGE and event.weight != "small"
    return "warning" if large and event.certainty == "high" else "note"


def _fix(event: Rebind) -> Plan | None:
    if "…" in event.inplace:
        return None
    return Plan(title=f"write `{event.inplace}`", changes=(Replace(event.site, event.inplace),), doubt=event.doubt)
