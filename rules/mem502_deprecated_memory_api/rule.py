"""MEM502: a name for memory that torch has given another name."""

from __future__ import annotations

from collections.abc import Iterator

from memlint.sdk import Event, Facts, Growth, Meta, Plan, Replace, Report

META = Meta(
    code="MEM502",
    name="deprecated-memory-api",
    summary="A memory function is used by its deprecated name, which emits a FutureWarning.",
    severity="note",
)


class OldName(Event, frozen=True, gc=False, kw_only=True):
    """A memory API that torch has renamed. ``name``: qualified; ``text``: its source; ``advice``: what to use instead,
    a clause; ``new``: the replacement at the site, "" for none."""

    name: str
    text: str
    advice: str
    new: str


def check(facts: Facts) -> Iterator[Report]:
    for event in facts.of(OldName):
        yield Report(
            site=event.site,
            message=f"`{event.name}` is deprecated{_also(event)}: each call emits a FutureWarning",
            help=event.advice,
            severity="note",
            confidence=event.certainty,
            growth=Growth("none", "once"),
            trace=event.trace,
            fix=_fix(event),
        )


def _also(event: OldName) -> str:
    """A promise of the old name that the function does not keep."""
    return " and resets all peaks, not only this one" if ".reset_max_" in event.name else ""


def _fix(event: OldName) -> Plan | None:
    if not event.new:
        return None
    return Plan(title=f"write `{event.new}`", changes=(Replace(event.site, event.new),))
