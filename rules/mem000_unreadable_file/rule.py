"""MEM000: a file that does not parse. The engine reports it; the room holds its page."""

from __future__ import annotations

from collections.abc import Iterator

from memlint.sdk import Facts, Meta, Report

META = Meta(
    code="MEM000",
    name="unreadable-file",
    summary="The file does not parse, so it was not checked.",
    severity="warning",
)


def check(facts: Facts) -> Iterator[Report]:
    yield from ()
