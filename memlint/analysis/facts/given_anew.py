"""The object that a function gets to work on: one that its callers keep, or a new one with each call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.domain.values import NOTHING, Path
from memlint.analysis.index.program import Function

if TYPE_CHECKING:
    from memlint.analysis.facts.analyser import Analyser


def is_given_anew(analyser: Analyser, summary: Summary, place: Path) -> bool:
    """Whether a place is inside an argument that is a different object in each call: the batch of a module's forward
    (``batch["x"]``), or an object that no known caller keeps between calls."""
    function = summary.function
    params = {f"p:{param.name}": param.name for param in function.given}
    if place.root not in params:
        return False
    works = function.name in ("forward", "__call__") or summary.hook is not None
    return works or not _is_kept_by_callers(analyser, function, params[place.root], set())


def is_some_member(path: Path) -> bool:
    """Whether a path goes through an arbitrary member of a container: an iterator's next item, an indexed sample."""
    return "[]" in path.steps


def _is_kept_by_callers(
    analyser: Analyser, function: Function, name: str, seen: set[tuple[tuple[str, str], str]]
) -> bool:
    """Whether some caller passes the same object for a parameter again and again: an attribute, a module variable, or
    an object from before the loop around the call."""
    seen.add((function.key, name))
    for caller, record in analyser.facts.calls_of(function):
        value = record.args.get(name, NOTHING)
        held = caller.last.heap if caller.last is not None else {}
        if any((obj := held.get(key)) is not None and obj.loops != record.loops for key in value.objs):
            return True
        params = {f"p:{param.name}": param.name for param in caller.function.given}
        for path in value.syms:
            if is_some_member(path):
                continue
            if path.root not in params or record.counts:
                return True
            inner = params[path.root]
            if (caller.function.key, inner) not in seen and _is_kept_by_callers(analyser, caller.function, inner, seen):
                return True
    return False
