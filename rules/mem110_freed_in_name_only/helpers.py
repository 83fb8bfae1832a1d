"""Functions of the project that free memory for their callers: what they empty, and what they delete that is their
caller's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from memlint.sdk import Site
from memlint.sdk.project import Analyser, Function, Summary, argument
from memlint.sdk.syntax import call_at, calls, ir, walk_statements
from memlint.sdk.values import EMPTIES

from .releases import deleted_by

COLLECTS = "gc.collect"
#: the most statements of a function that only frees memory
_SHORT = 16
#: methods that move a model's parameters elsewhere, so that they are freed whoever holds the model
_MOVES = frozenset({"cpu", "to", "to_empty", "close", "free", "unload"})


class Given(NamedTuple):
    """A call whose callee deletes the parameter that it gives a variable for: the place of the deletion."""

    call: ir.Call
    name: str
    parameter: str
    site: Site


def freeing_calls(analyser: Analyser, summary: Summary) -> set[int]:
    """The ordinals of the calls that empty the cache or collect garbage, or whose callee does only that."""
    return _own(summary) | {
        record.at for record in summary.calls.values() if _only_frees(analyser, analyser.function_at(record.callee))
    }


def _own(summary: Summary) -> set[int]:
    return {at for at, call in summary.notes.outside.items() if call.name in EMPTIES or call.name == COLLECTS}


def _only_frees(analyser: Analyser, function: Function | None) -> bool:
    """Whether a function of the project is a short one that frees memory, and neither repeats nor returns anything."""
    if function is None or function.node is None:
        return False
    statements = list(walk_statements(function.body))
    if len(statements) > _SHORT or any(
        isinstance(one, ir.For | ir.While | ir.FunctionDef) or (isinstance(one, ir.Return) and one.value is not None)
        for one in statements
    ):
        return False
    summary = analyser.summary(function)
    return summary is not None and bool(_own(summary))


def deleted_in_callees(analyser: Analyser, summary: Summary) -> Iterator[Given]:
    """The calls of functions that delete a parameter to free its memory, where the argument is a variable."""
    for record in sorted(summary.calls.values(), key=lambda one: one.at):
        function = analyser.function_at(record.callee)
        if not _only_frees(analyser, function) or function is None:
            continue
        expr = call_at(summary.function.body, record.at)
        inner = analyser.summary(function)
        if expr is None or inner is None:
            continue
        names = [param.name for param in function.given]
        for statement in walk_statements(function.body):
            for name in deleted_by(statement):
                value = argument(expr, names.index(name), name) if name in names else None
                if isinstance(value, ir.Name) and not _moved(function, name):
                    yield Given(expr, value.id, name, inner.site(statement.at))


def _moved(function: Function, name: str) -> bool:
    return any(
        isinstance(call.func, ir.Attr)
        and call.func.name in _MOVES
        and isinstance(call.func.value, ir.Name)
        and call.func.value.id == name
        for call in calls(function.body)
    )
