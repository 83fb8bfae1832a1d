"""MEM501: a name for memory that torch does not have."""

from __future__ import annotations

from collections.abc import Iterator

from memlint.sdk import Event, Facts, Growth, Meta, Report

META = Meta(
    code="MEM501",
    name="no-such-api",
    summary="A memory function that torch does not have is used: the program raises an error there.",
    severity="warning",
)


class MissingName(Event, frozen=True, gc=False, kw_only=True):
    """A memory API that torch does not have. ``name``: qualified (without a class for a ``method``); ``text``: its
    source; ``advice``: what to use instead, a clause."""

    name: str
    text: str
    advice: str
    method: bool = False


def check(facts: Facts) -> Iterator[Report]:
    for event in facts.of(MissingName):
        lacks = f"a tensor has no `{event.name}()`" if event.method else f"torch has no `{event.name}`"
        raised = "an ImportError" if event.text.startswith("from ") else "an AttributeError"
        yield Report(
            site=event.site,
            message=f"{lacks}: `{event.text}` raises {raised}, and no memory is freed or measured",
            help=event.advice,
            severity="warning",
            confidence=event.certainty,
            growth=Growth("none", "once"),
            trace=event.trace,
        )
