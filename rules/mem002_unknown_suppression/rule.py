"""MEM002: a suppression of a rule that does not exist. The engine reports it; the room holds its page."""

from __future__ import annotations

from collections.abc import Iterator

from memlint.sdk import Facts, Meta, Report

META = Meta(
    code="MEM002",
    name="unknown-suppression",
    summary="The comment suppresses a rule that memlint does not know.",
    severity="warning",
)


def check(facts: Facts) -> Iterator[Report]:
    yield from ()
