"""MEM105: a hook keeps what it is given, or hooks pile up on a module."""

from __future__ import annotations

from collections.abc import Iterator

from memlint.sdk import Facts, Growth, HookAdded, Meta, Report, each_round

META = Meta(
    code="MEM105",
    name="leaky-hook",
    summary="A hook keeps every activation or gradient that it sees, or one more hook is added each time.",
    severity="error",
    preview=True,
)


def check(facts: Facts) -> Iterator[Report]:
    for event in facts.of(HookAdded):
        yield _keeps(event) if event.problem == "keeps" else _piles(event)


def _keeps(event: HookAdded) -> Report:
    each = (
        each_round(event.loop) if event.loop is not None else "each forward" if not event.backward else "each backward"
    )
    graph = ", with the graph that made it where autograd records," if event.attached and not event.backward else ""
    until = ", until the hook is removed" if event.removed else ""
    return Report(
        site=event.site,
        message=f"this hook keeps `{event.value}` in `{event.place}`{graph} and nothing empties it: "
        f"device memory grows with {each}{until}",
        advice=_advice(event),
        # (what is collected until the hook is removed is most often wanted, though not on the device)
        severity="error" if event.loop is not None and (graph or not event.removed) else "warning",
        confidence=event.certainty,
        growth=Growth("device-graph" if graph else "device-tensor", "per-iteration"),
        trace=event.trace,
    )


def _advice(event: HookAdded) -> str:
    cut = f"`{event.value}.detach().cpu()`" if event.value.isidentifier() else "what it needs on the host"
    return (
        f"empty `{event.place}` when its content was used, or keep {cut}, and remove the hook by its handle when it "
        "has served"
    )


def _piles(event: HookAdded) -> Report:
    assert event.loop is not None
    also = f", each of them keeping `{event.value}` in a `{event.place}` of its own" if event.place else ""
    return Report(
        site=event.site,
        message=f"`{event.added}` adds one more hook with {each_round(event.loop)}, and nothing removes them: all run "
        f"in every pass from then on{also}",
        advice="add it once, or keep the handle that it returns and call `remove()` on it",
        severity="error" if event.place else "warning",
        confidence=event.certainty,
        growth=Growth("device-tensor" if event.place else "host", "per-iteration"),
        trace=event.trace,
    )
