"""What the callers of a function pass for a parameter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memlint.analysis.facts.calls_by_name import TooManyError, calls_of_class, calls_of_function
from memlint.analysis.index.program import Function
from memlint.fix.safety import vocabulary as words
from memlint.ir import nodes as ir

if TYPE_CHECKING:
    from memlint.analysis.facts.analyser import Analyser


class UnknownCallersError(Exception):
    """Not all callers of the function are known, or not what they pass."""


def passed_for(analyser: Analyser, function: Function, name: str) -> list[tuple[Function, ir.Expr]]:
    """The expressions that all calls pass for a parameter, each with its function: the caller, or for a default the
    function itself. Empty if no call is found. Raises UnknownCallersError."""
    index = next(i for i, param in enumerate(function.params) if param.name == name)
    param = function.params[index]
    bound = 1 if function.takes_self else 0
    if param.kind in ("star", "double-star") or index < bound or not _has_known_callers(analyser, function):
        raise UnknownCallersError
    found = []
    for caller, call in _calls(analyser, function):
        if call is None or any(isinstance(arg, ir.Starred) for arg in call.args):
            raise UnknownCallersError
        given = next((word.value for word in call.keywords if word.name == name), None)
        if given is None and any(word.name is None for word in call.keywords):
            raise UnknownCallersError
        if given is None and index - bound < len(call.args):
            given = call.args[index - bound]
        if given is not None:
            found.append((caller, given))
        elif param.default is not None:
            found.append((function, param.default))
        else:
            raise UnknownCallersError
    return found


def _has_known_callers(analyser: Analyser, function: Function) -> bool:
    """Whether only calls that name the function, or its class, run it."""
    if set(function.decorator_names) - words.PLAIN_DECORATORS or isinstance(function.node, ir.Lambda | None):
        return False
    if function.name == "__init__":
        return function.cls is None or not any(analyser.program.below(function.cls))
    return not function.name.startswith("__") and function.name != "forward" and analyser.hook(function) is None


def _calls(analyser: Analyser, function: Function) -> list[tuple[Function, ir.Call | None]]:
    try:
        if function.name == "__init__" and function.cls is not None:
            return calls_of_class(analyser, function.cls)
        return calls_of_function(analyser, function)
    except TooManyError:
        raise UnknownCallersError from None
