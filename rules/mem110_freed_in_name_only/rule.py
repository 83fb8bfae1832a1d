"""MEM110: a name is deleted to free memory that another, no longer read name still holds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from memlint.sdk import Event, Facts, Growth, Meta, Report

META = Meta(
    code="MEM110",
    name="freed-in-name-only",
    summary="A model or checkpoint is deleted to free its memory, but another unused name still holds it.",
    severity="warning",
    preview=True,
)

#: how another name holds the memory: it is the same object, the model that a wrapper was made of, an optimizer or
#: scheduler of its parameters, an object or container that refers to it, its state, a part of it, a result whose graph
#: refers to it, the variable whose value was given to the function that deletes it
Hold = Literal["same", "inner", "optimizer", "schedule", "object", "container", "state", "part", "graph", "given"]


class NameOnly(Event, frozen=True, gc=False, kw_only=True):
    """A name is deleted to free memory which another name, that is never read again, still holds. ``name``: the deleted
    one; ``holder`` and ``how`` it holds the object; ``others``: further holders; ``during``: the call that runs
    meanwhile, in the ``next_round`` or in this; ``runs``: it runs a model, and does not only create or load one;
    ``via``: the function that was called to delete it."""

    name: str
    kind: Literal["model", "checkpoint"]
    holder: str
    how: Hold
    others: tuple[str, ...]
    during: str
    next_round: bool
    runs: bool
    via: str = ""


#: what the deletion leaves, and how the holder refers to it
HOLDS = {
    "same": ("frees no memory", "is the same object"),
    "inner": ("does not free the model in it", "is that model"),
    "optimizer": ("does not free its parameters", "still holds them"),
    "schedule": ("does not free its parameters", "still holds their optimizer"),
    "object": ("frees no memory", "still holds it"),
    "container": ("frees no memory", "still holds it"),
    "state": ("does not free its parameters", "still holds them"),
    "part": ("does not free all of its memory", "still holds a part"),
    "graph": ("does not free its parameters", "still holds them by its graph"),
    "given": ("frees no memory", "still holds it"),
}


def check(facts: Facts) -> Iterator[Report]:
    for event in facts.of(NameOnly):
        yield Report(
            site=event.site,
            message=_message(event),
            help=_help(event),
            severity="warning" if _is_grave(event) else "note",
            confidence=event.certainty,
            growth=Growth("device-tensor", "peak"),
            trace=event.trace,
        )


def _is_grave(event: NameOnly) -> bool:
    """Whether a model surely remains beside all that another one needs to run: the holder in one iteration is released
    early in the next."""
    return event.kind == "model" and event.runs and not event.next_round and event.certainty == "high"


def _names(event: NameOnly) -> str:
    return " and ".join(f"`{name}`" for name in (event.holder, *event.others))


def _help(event: NameOnly) -> str:
    if event.how == "given":
        return f"delete `{event.holder}` here, and empty the cache after that"
    return f"delete {_names(event)} too, before the cache is emptied"


def _message(event: NameOnly) -> str:
    leaves, holds = HOLDS[event.how]
    if event.others:
        also = " and ".join(f"`{name}`" for name in event.others)
        holds += f" (as {'do' if len(event.others) > 1 else 'does'} {also})"
    meanwhile = f"`{event.during}` {'runs' if event.runs else 'takes memory'}"
    when = " in the next iteration" if event.next_round else ""
    what = (
        f"deleting `{event.name}`" if event.how != "given" else f"`{event.via}` deletes its own `{event.name}`, which"
    )
    return f"{what} {leaves}: `{event.holder}`, which is not used any more, {holds} while {meanwhile}{when}"
