"""Backwards of a graph that comes in with arguments: whether it is needed again is known only in the callers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet

from memlint.sdk.project import Analyser, Function, Summary, TooManyError, calls_of_function
from memlint.sdk.values import Backward, Path, Source, tensors_within

#: the most callers that are examined
_MAX_CALLERS = 8

#: whether a backward, run for a caller, surely keeps its graph in vain; None if the graph may be needed
Ask = Callable[["Analyser", Summary, Backward], bool | None]


def united(backwards: Sequence[Backward]) -> Backward:
    """The backwards at one site, on all paths to it, as one."""
    return backwards[-1]._replace(reached=frozenset().union(*(one.reached for one in backwards)))


def places_with(summary: Summary, marks: frozenset[Source]) -> Iterator[Path]:
    """The places outside of a function that hold parts of a graph at its exit, without those that held them before."""
    assert summary.exit is not None
    for path, value in summary.exit.sym.items():
        held = summary.graphs.closure(tensors_within(summary, summary.exit, value).src)
        if marks & held and held != {path}:
            yield path


def of_arguments(summary: Summary, names: AbstractSet[str]) -> frozenset[Path]:
    """All symbols for arguments of these names, or for parts of them."""
    nodes = summary.graphs.nodes.values()
    sources = (summary.left, summary.notes.returned, *(one.reached for one in summary.backwards))
    return frozenset(
        item
        for item in frozenset().union(*sources, *(node.parents for node in nodes))
        if isinstance(item, Path) and item.root in names
    )


def given_for_nothing(analyser: Analyser, summary: Summary, ask: Ask) -> bool | None:
    """Whether all callers of a function surely need the graphs no more that they pass to its backward; None if it is
    unknown: an unknown caller may run its own backward."""
    function = summary.function
    calls = analyser.facts.calls_of(function)
    if not 0 < len(calls) <= _MAX_CALLERS or _is_handed_on(analyser, function):
        return None
    sure = True
    for caller, record in calls:
        if caller.cut_short or caller.exit is None or any(other >= record.at for other in caller.notes.blind_at):
            return None
        here = [one for one in caller.backwards if one.site == caller.site(record.at)]
        found = ask(analyser, caller, united(here)) if here else None
        if found is None:
            return None
        sure = sure and found
    return sure


def _is_handed_on(analyser: Analyser, function: Function) -> bool:
    """Whether the function may be used as a value, or is called in a lambda, so that its losses are unknown."""
    if analyser.facts.is_handed_on(function):
        return True
    try:
        return any(call is None for _, call in calls_of_function(analyser, function))
    except TooManyError:
        return True
