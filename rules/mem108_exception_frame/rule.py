"""MEM108: an except clause needs memory while the frames of the failed code still hold their tensors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from memlint.sdk import Event, Facts, Growth, Meta, Report

META = Meta(
    code="MEM108",
    name="exception-frame",
    summary="Code that ran out of memory is retried inside `except`, while the failed frames hold their tensors.",
    severity="warning",
)

#: what an except clause does while the frames of the failed code are alive: it repeats the work, runs another model,
#: stores the exception until the next one, or collects exceptions
Recovery = Literal["retry", "run", "stored", "collected"]


class Recover(Event, frozen=True, gc=False, kw_only=True):
    """An except clause needs memory while the frames of the failed code are alive. ``text``: the call, or the stored
    value; ``place``: where it is stored."""

    how: Recovery
    text: str
    place: str = ""


AFTER = "set a flag in the except clause, and {} after it, when the frames are freed"


def check(facts: Facts) -> Iterator[Report]:
    for event in facts.of(Recover):
        yield Report(
            site=event.site,
            message=_message(event),
            help=_help(event),
            severity="warning" if event.how == "retry" else "note",
            confidence=event.certainty,
            growth=Growth("device-tensor", "per-iteration" if event.how == "collected" else "peak"),
            trace=event.trace,
        )


def _message(event: Recover) -> str:
    if event.place:
        until = "" if event.how == "collected" else " while the loop goes on"
        return f"`{event.place}` keeps the exception{until}: device memory stays taken by the tensors in its frames"
    what = "tries again" if event.how == "retry" else "runs a model"
    return (
        f"`{event.text}` {what} inside `except`: the exception still holds the frames that ran out of memory, and "
        "their activations stay in device memory"
    )


def _help(event: Recover) -> str:
    if event.place:
        return "store its text instead: `traceback.format_exc()`"
    return AFTER.format("try again" if event.how == "retry" else "do this")
