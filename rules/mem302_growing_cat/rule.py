"""MEM302: a tensor that is grown by concatenating onto itself."""

from __future__ import annotations

import re
from collections.abc import Iterator

from memlint.sdk import (
    Around,
    Carry,
    Change,
    Confidence,
    Facts,
    Growth,
    Line,
    Meta,
    Plan,
    Report,
    Severity,
    Site,
    Step,
    cause,
    detached,
    each_round,
    weakest,
)

META = Meta(
    code="MEM302",
    name="growing-cat",
    summary="A tensor grows by cat or stack onto itself in a loop, which copies all of it each time.",
    severity="error",
)

SEEKS = "a tensor that a loop, or each call of a function, concatenates onto itself"
CANDIDATES = ("cat",)

LARGE = ("batch", "activation", "model")
_GRAVEST: tuple[Severity, ...] = ("error", "warning", "note")
_LARGEST = ("large", "unknown", "small")
_SUREST: tuple[Confidence, ...] = ("high", "medium", "low")


def check(facts: Facts) -> Iterator[Report]:
    """One report per loop: tensors that grow together (predictions and targets) are reported once, at the worst one."""
    beside: dict[tuple[str, Site, bool], list[Carry]] = {}
    for event in facts.of(Carry):
        if event.how == "cat":
            beside.setdefault((event.function, event.loop.site, _keeps_graph(event)), []).append(event)
    for (_, _, graph), grown in beside.items():
        yield _report(sorted(grown, key=lambda event: _rank(event, graph)), graph)


def _rank(event: Carry, graph: bool) -> tuple[int, int, int]:
    """A sort key: the most severe first, then the largest, then the most certain."""
    sure = _SUREST.index(_confidence(event, graph))
    return _GRAVEST.index(_severity(event, graph)), _LARGEST.index(event.value.weight), sure


def _report(grown: list[Carry], graph: bool) -> Report:
    event, *others = grown
    trace = (*event.trace, *(Step(other.site, f"`{other.place.text}` grows beside it") for other in others))
    return Report(
        site=event.site,
        message=f"{_places(event, others)} copied whole with {each_round(event.loop)}: {_cost(graph)}",
        help=_help(event, graph),
        severity=_severity(event, graph),
        confidence=_confidence(event, graph),
        growth=_growth(event, graph),
        trace=(*event.value.origin, *trace, *cause(event)) if graph else (*trace, *cause(event)),
        fix=_fix(grown),
    )


def _places(event: Carry, others: list[Carry]) -> str:
    names = list(dict.fromkeys(f"`{one.place.text}`" for one in (event, *others)))
    if len(names) == 1:
        return f"{names[0]} is"
    return f"{names[0]} and {names[1] if len(names) == 2 else f'{len(names) - 1} more'} are"


def _confidence(event: Carry, graph: bool) -> Confidence:
    """Low if each step of a loop over no data adds a few numbers: what a network generates takes it far more."""
    if graph:
        return weakest(event.certainty, event.value.certainty)
    many = event.value.weight != "small" or event.loop.over_data or event.loop.batches or event.loop.trains
    return event.certainty if many else "low"


def _cost(graph: bool) -> str:
    more = "the bytes copied grow with the square of the number of parts"
    return f"{'memory grows by the autograd graph of every part' if graph else more}, and the peak is twice the result"


def _keeps_graph(event: Carry) -> bool:
    """Whether the growth keeps graphs. If each iteration selects rows of the grown tensor (a beam), all of it is
    needed, and whether its graphs should exist is reported where the state is carried."""
    kept = event.value.attached in ("yes", "some") and event.value.freed in ("no", "some")
    return kept and not event.needed and not event.bounded


def _growth(event: Carry, graph: bool) -> Growth:
    if graph:
        return Growth("host" if event.value.graph_device == "cpu" else "device-graph", "per-iteration")
    if event.value.size in LARGE and event.value.weight != "small":
        return Growth("host" if event.value.device == "cpu" else "device-tensor", "peak")
    return Growth("none", "time")


#: words of a count of all batches, or of unbounded steps
_OF_ALL = re.compile(r"len\(|loader|dataset|batches|steps|iter|epoch")


def _severity(event: Carry, graph: bool) -> Severity:
    loop = event.loop
    if graph:
        return "error" if loop.over_data else "warning"
    parts = loop.kind == "for" and not (loop.over_data or loop.trains or loop.names_samples)
    # (a count that names nothing large: ``range(times - 1)``)
    counted = not loop.trains and loop.source.startswith("range(") and _OF_ALL.search(loop.source) is None
    few = loop.trips is not None or loop.over == "range" or counted or event.bounded or parts
    return "note" if event.value.weight != "large" or few else "warning"


def _fix(grown: list[Carry]) -> Plan | None:
    """A fix for all tensors that grow together, or none."""
    changes: list[Change] = []
    for gather in (event.gather for event in sorted(grown, key=lambda event: event.site)):
        if gather is None:
            return None
        changes += (
            Line(gather.loop, gather.start),
            Around(gather.part, gather.statement, f"{gather.name}.append(", ")"),
            Line(gather.loop, gather.end, behind=True),
        )
    title = "collect the parts in a list, and concatenate once (saves the copies, not the peak)"
    doubt = next((event.gather.doubt for event in grown if event.gather is not None and event.gather.doubt), "")
    return Plan(title=title, changes=tuple(changes), doubt=doubt)


def _help(event: Carry, graph: bool) -> str:
    part = detached(event.value.text) if graph else event.value.text
    if event.loop.over == "requests":
        return f"limit how many are kept, or write `{part}` into a tensor allocated for the most that there may be"
    allocated = f"write `{part}` into a tensor allocated before the loop"
    if event.read:
        return f"{allocated}, and pass on the part of it that is filled"
    gathered = "collect the parts in a list and concatenate once after the loop"
    return gathered if event.needed and not graph else f"{allocated}; or, to avoid the copies only, {gathered}"
