"""MEM105: a hook stores its arguments, or hooks accumulate on a module."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from memlint.sdk import Event, Facts, Growth, Loop, Meta, Report, each_round

META = Meta(
    code="MEM105",
    name="leaky-hook",
    summary="A hook keeps every activation or gradient that it gets, or a hook is added again and again.",
    severity="error",
)

#: the problem: the hook stores its arguments, or hooks accumulate
HookProblem = Literal["keeps", "piles"]


class HookAdded(Event, frozen=True, gc=False, kw_only=True):
    """A leaky hook on a module or tensor. ``added``: the call that adds it. ``loop``: the loop that repeats, None if
    unknown. ``place``: where it stores its arguments ("" if it does not), and ``value`` the source of those;
    ``attached``: with a graph, if it has one; ``backward``: its arguments are gradients; ``removed``: it is removed
    after the loop."""

    problem: HookProblem
    added: str
    loop: Loop | None
    place: str = ""
    value: str = ""
    attached: bool = False
    backward: bool = False
    removed: bool = False


def check(facts: Facts) -> Iterator[Report]:
    for event in facts.of(HookAdded):
        yield _keeps(event) if event.problem == "keeps" else _piles(event)


def _keeps(event: HookAdded) -> Report:
    each = (
        each_round(event.loop) if event.loop is not None else "each forward" if not event.backward else "each backward"
    )
    graph = " with its autograd graph" if event.attached and not event.backward else ""
    until = " until the hook is removed" if event.removed else ""
    return Report(
        site=event.site,
        message=f"this hook keeps `{event.value}`{graph} in `{event.place}`, which nothing empties: "
        f"device memory grows with {each}{until}",
        help=_help(event),
        # what is collected until the hook is removed is usually needed, though not on the device
        severity="error" if event.loop is not None and (graph or not event.removed) else "warning",
        confidence=event.certainty,
        growth=Growth("device-graph" if graph else "device-tensor", "per-iteration"),
        trace=event.trace,
    )


def _help(event: HookAdded) -> str:
    kept = f"`{event.value}.detach().cpu()`" if event.value.isidentifier() else "a detached copy on the host"
    return f"empty `{event.place}` after each use or store {kept}; remove the hook by its handle when it is done"


def _piles(event: HookAdded) -> Report:
    assert event.loop is not None
    grows = (
        f"device memory grows by the `{event.value}` that each keeps in its own `{event.place}`"
        if event.place
        else "all of them run in every later pass, and host memory grows"
    )
    return Report(
        site=event.site,
        message=f"`{event.added}` adds a hook with {each_round(event.loop)} and none is removed: {grows}",
        help="add the hook once, or call `remove()` on the handle that it returns",
        severity="error" if event.place else "warning",
        confidence=event.certainty,
        growth=Growth("device-tensor" if event.place else "host", "per-iteration"),
        trace=event.trace,
    )
