"""Graphs that stay in sight: no unresolved code gets them, and no object or variable that others read keeps them."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING

from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.domain.values import Source
from memlint.analysis.facts.known_callers import has_known_callers
from memlint.analysis.transfer.held_values import places_with, tensors_within

if TYPE_CHECKING:
    from memlint.analysis.facts.analyser import Analyser

#: the most functions, callers of callers included, that may get the graphs
_MOST = 16


def stays_inside(analyser: Analyser, summary: Summary, marks: AbstractSet[Source]) -> bool:
    """Whether the function, and each caller to which it returns these graphs, keeps them to itself and runs no backward
    through them. False if callers are unknown, or too many."""
    todo, seen = [(summary, marks)], {summary.function.key}
    while todo:
        one, held = todo.pop()
        if not _keeps_to_itself(one, held):
            return False
        if held.isdisjoint(one.graphs.closure(one.notes.returned)):
            continue
        calls = analyser.facts.calls_of(one.function) if has_known_callers(analyser, one.function) else []
        if not calls:
            return False
        for caller, record in calls:
            if caller.exit is None or caller.function.key in seen or len(seen) >= _MOST:
                return False
            inner = tensors_within(caller, caller.exit, record.result).src
            if not inner:
                return False
            seen.add(caller.function.key)
            todo.append((caller, inner))
    return True


def _keeps_to_itself(summary: Summary, marks: AbstractSet[Source]) -> bool:
    """Whether a function runs no backward, and neither hands these graphs on nor stores them where others read."""
    if summary.exit is None or summary.may_train or summary.yields:
        return False
    handed = marks & summary.graphs.closure(summary.escaped | summary.left)
    stored = places_with(summary, summary.exit, marks)
    return not handed and all(place.root.startswith("g:") for place in stored)
