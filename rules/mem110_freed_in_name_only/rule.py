"""MEM110: a name is deleted to free memory that another one holds, which nobody reads any more."""

from __future__ import annotations

from collections.abc import Iterator

from memlint.sdk import Facts, Growth, Line, Meta, NameOnly, Plan, Report

META = Meta(
    code="MEM110",
    name="freed-in-name-only",
    summary="A model or checkpoint is deleted to free its memory, which another name still holds, unused.",
    severity="warning",
)

HOLDS = {
    "same": "is the same object",
    "optimizer": "still holds its parameters",
    "schedule": "still holds its optimizer, with the parameters",
    "object": "still holds it",
    "container": "still holds it",
    "state": "still holds its parameters",
    "part": "still holds its tensors",
    "graph": "still leads to its parameters, by its graph",
}


def check(facts: Facts) -> Iterator[Report]:
    for event in facts.of(NameOnly):
        yield Report(
            site=event.site,
            message=_message(event),
            advice=f"delete {_names(event)} as well, before the cache is emptied",
            severity="warning" if event.kind == "model" and event.runs and event.certainty == "high" else "note",
            confidence=event.certainty,
            growth=Growth("device-tensor", "peak"),
            trace=event.trace,
            fix=_fix(event),
        )


def _names(event: NameOnly) -> str:
    return " and ".join(f"`{name}`" for name in (event.holder, *event.others))


def _message(event: NameOnly) -> str:
    also = f" (as {'do' if len(event.others) > 1 else 'does'} {' and '.join(f'`{name}`' for name in event.others)})"
    holds = HOLDS[event.how] + (also if event.others else "")
    when = " in the next round" if event.next_round else ""
    return (
        f"deleting `{event.name}` frees nothing: `{event.holder}`, which nothing reads any more, {holds} while "
        f"`{event.during}` {'runs' if event.runs else 'takes memory'}{when}"
    )


def _fix(event: NameOnly) -> Plan:
    line = Line(event.site, f"del {', '.join((event.holder, *event.others))}")
    return Plan(title=f"delete {_names(event)} as well", changes=(line,), doubt=event.doubt)
