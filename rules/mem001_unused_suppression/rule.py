"""MEM001: a suppression that suppresses nothing. The engine reports it; the room holds its page."""

from __future__ import annotations

from collections.abc import Iterator

from memlint.sdk import Facts, Meta, Report

META = Meta(
    code="MEM001",
    name="unused-suppression",
    summary="The comment suppresses a finding that is not there.",
    severity="warning",
)


def check(facts: Facts) -> Iterator[Report]:
    yield from ()
