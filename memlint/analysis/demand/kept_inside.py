"""Graphs that stay in sight: no unresolved code gets them, and no object that others read keeps them. (Global variables
may: what reads them is of the programs that run the code, and those are looked at as a whole.)"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING

from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.domain.values import Path, Source
from memlint.analysis.facts.calls_by_name import has_known_callers
from memlint.analysis.syntax.syntax import last_name
from memlint.analysis.transfer.held_values import places_with, tensors_within
from memlint.ir import nodes as ir

if TYPE_CHECKING:
    from memlint.analysis.facts.analyser import Analyser

#: the most functions, callers of callers included, that may get the graphs
_MOST = 16
#: constructors of containers
_CONTAINERS = frozenset({"dict", "list", "set", "defaultdict", "OrderedDict", "deque"})


def stays_inside(analyser: Analyser, summary: Summary, marks: AbstractSet[Source]) -> bool:
    """Whether the function, and each caller to which it returns these graphs, keeps them to itself and runs no backward
    through them. False if callers are unknown, or too many."""
    todo, seen = [(summary, marks)], {summary.function.key}
    while todo:
        one, held = todo.pop()
        if not _keeps_to_itself(analyser, one, held):
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


def _keeps_to_itself(analyser: Analyser, summary: Summary, marks: AbstractSet[Source]) -> bool:
    """Whether a function runs no backward, and neither hands these graphs on nor stores them where others read."""
    if summary.exit is None or summary.may_train or summary.yields:
        return False
    handed = marks & summary.graphs.closure(summary.escaped | summary.left)
    stored = places_with(summary, summary.exit, marks)
    return not handed and all(_is_own(analyser, place) for place in stored)


def _is_own(analyser: Analyser, place: Path) -> bool:
    """Whether a place is a variable of the program, with a value that its file makes: one of another module's may be
    read there."""
    if not place.root.startswith("g:"):
        return False
    key, name = place.root[2:].rsplit(":", 1)
    bindings = analyser.program.module(key).bindings.get(name, ())
    return all(isinstance(one, ir.Assign | ir.AnnAssign) and _is_new(one.value) for one in bindings)


def _is_new(value: ir.Expr | None) -> bool:
    if isinstance(value, ir.Call):
        return last_name(value.func) in _CONTAINERS
    return value is None or isinstance(value, ir.Display | ir.DictDisplay | ir.Comprehension | ir.Const)
