"""MEM108: an except clause goes on while the frames of what failed still hold their tensors."""

from __future__ import annotations

from collections.abc import Iterator

from memlint.sdk import Facts, Growth, Meta, Recover, Report

META = Meta(
    code="MEM108",
    name="exception-frame",
    summary="What ran out of memory is tried again inside `except`, while the frames that failed hold their tensors.",
    severity="warning",
)

AFTER = "only set a flag in the except clause, and {} after it, where the frames are gone"


def check(facts: Facts) -> Iterator[Report]:
    for event in facts.of(Recover):
        yield Report(
            site=event.site,
            message=_message(event),
            advice=_advice(event),
            severity="warning" if event.how == "retry" else "note",
            confidence=event.certainty,
            growth=Growth("device-tensor", "per-iteration" if event.how == "collected" else "peak"),
            trace=event.trace,
        )


def _message(event: Recover) -> str:
    if event.place:
        until = "" if event.how == "collected" else " while the loop goes on"
        return (
            f"`{event.place}` keeps the exception{until}, with the frames that it came through and the tensors in "
            "their variables"
        )
    what = "tries again" if event.how == "retry" else "runs a model"
    return (
        f"`{event.text}` {what} inside `except`, while the exception keeps the frames of what ran out of memory, with "
        "the activations in their variables"
    )


def _advice(event: Recover) -> str:
    if event.place:
        return "keep its text instead: `traceback.format_exc()`"
    return AFTER.format("try again" if event.how == "retry" else "do this")
