"""Whether all callers of a function are known, and where they call it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memlint.analysis.facts.calls_by_name import TooManyError, calls_of_class, calls_of_function
from memlint.analysis.index.bases import knows_bases
from memlint.analysis.index.program import Function
from memlint.ir import nodes as ir
from memlint.knowledge import PLAIN_DECORATORS

if TYPE_CHECKING:
    from memlint.analysis.facts.analyser import Analyser


class UnknownCallersError(Exception):
    """Not all callers of a function are known. Its text says why: what follows "`name` "."""


def known_calls(analyser: Analyser, function: Function) -> list[tuple[Function, ir.Call]]:
    """All calls of a function, with their callers. Raises UnknownCallersError."""
    if not _is_called_by_name(analyser, function):
        raise UnknownCallersError("may have callers that are not known")
    try:
        if function.name == "__init__" and function.cls is not None:
            found = calls_of_class(analyser, function.cls)
        else:
            found = calls_of_function(analyser, function)
    except TooManyError:
        raise UnknownCallersError("has too many callers to check them all") from None
    calls = [(caller, call) for caller, call in found if call is not None]
    if len(calls) < len(found) or analyser.facts.is_handed_on(function):
        raise UnknownCallersError("is passed as a value")
    return calls


def has_known_callers(analyser: Analyser, function: Function) -> bool:
    """Whether all callers of a function are known."""
    try:
        known_calls(analyser, function)
    except UnknownCallersError:
        return False
    return True


def _is_called_by_name(analyser: Analyser, function: Function) -> bool:
    """Whether only code that names the function, or its class, calls it: Python calls special methods, a module its
    forward, a base class or a framework the methods that it knows, a decorator what it decorates, and whoever gets a
    nested function may call it."""
    if isinstance(function.node, ir.Lambda | None) or function.enclosing is not None:
        return False
    if set(function.decorator_names) - PLAIN_DECORATORS or analyser.hook(function) is not None:
        return False
    if function.name == "__init__":
        return function.cls is None or not any(analyser.program.below(function.cls))
    if function.name.startswith("__") or function.name == "forward":
        return False
    return function.cls is None or knows_bases(analyser.program, function.cls)
