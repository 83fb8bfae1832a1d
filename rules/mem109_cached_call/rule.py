"""MEM109: a cache of functools keeps modules, data sets or tensors that nothing else refers to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from memlint.sdk import Event, Facts, Growth, Memory, Meta, Report

META = Meta(
    code="MEM109",
    name="cached-call",
    summary="A functools cache on a method of a module or dataset keeps every instance that it was called on.",
    severity="warning",
)

#: what a cache keeps alive
CacheHolder = Literal["module", "data", "tensors", "argument"]


class CachedCall(Event, frozen=True, gc=False, kw_only=True):
    """A function whose cache keeps its arguments. ``holder``: the largest of them: the instance of a module, data class
    or class with tensors (``owner``), or an argument; ``argument``: the parameter for a module or tensor, if any.
    ``size``: how many calls are kept, None for all or for an unknown number; ``bounded``: not all of them; ``plain``:
    the instance is the only argument."""

    holder: CacheHolder
    name: str
    owner: str
    decorator: str
    size: int | None
    bounded: bool
    argument: str
    plain: bool


HELD = {"module": "with its parameters", "data": "with its data", "tensors": "with its tensors"}


def check(facts: Facts) -> Iterator[Report]:
    for event in facts.of(CachedCall):
        method = event.holder != "argument"
        yield Report(
            site=event.site,
            message=_message(event),
            help=_help(event),
            severity="warning" if method and not event.bounded else "note",
            confidence=event.certainty,
            growth=_growth(event),
            trace=event.trace,
        )


def _message(event: CachedCall) -> str:
    decorator = f"`@{event.decorator}`"
    if event.holder == "argument":
        kept = f"{decorator} keeps every `{event.argument}` that `{event.name}` is called with, and the result"
        return f"{kept}, in memory {_until(event)}"
    each = f"every `{event.owner}`" if not event.bounded or event.size != 1 else f"the last `{event.owner}`"
    also = f", each `{event.argument}`" if event.argument else "" if event.plain else ", the arguments"
    kept = f"{decorator} keeps {each} that `{event.name}` is called on, {HELD[event.holder]}{also} and the result"
    return f"{kept}, in memory {_until(event)}"


def _until(event: CachedCall) -> str:
    if not event.bounded:
        return "until the program ends"
    if event.size is None:
        return "until later calls replace it"
    return "until another call replaces it" if event.size == 1 else f"until {event.size:,} other calls replace it"


def _help(event: CachedCall) -> str:
    if event.holder == "argument":
        return f"compute it where `{event.argument}` is made, or keep it in a `weakref.WeakKeyDictionary`"
    if event.plain:
        return "use `functools.cached_property`, which keeps the value on the instance and is freed with it"
    return "keep the results in a dictionary on the instance, which is freed with it"


def _growth(event: CachedCall) -> Growth:
    if event.argument:
        return Growth("device-tensor", "per-iteration" if not event.bounded else "once")
    memory: Memory = "host" if event.holder == "data" else "device-tensor"
    return Growth(memory, "per-epoch" if not event.bounded else "once")
