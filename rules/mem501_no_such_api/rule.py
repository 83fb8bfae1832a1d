"""MEM501: a name for memory that torch does not have."""

from __future__ import annotations

from collections.abc import Iterator

from memlint.sdk import ApiUse, Facts, Growth, Meta, Report

META = Meta(
    code="MEM501",
    name="no-such-api",
    summary="A memory function that torch does not have is used: the program raises an error there.",
    severity="warning",
)


def check(facts: Facts) -> Iterator[Report]:
    for event in facts.of(ApiUse):
        if event.kind == "deprecated":
            continue
        lacks = f"torch has no `{event.name}`" if event.kind == "fictional" else f"a tensor has no `{event.name}()`"
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
