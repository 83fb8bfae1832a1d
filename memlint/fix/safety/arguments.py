"""What the callers of a function pass for a parameter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memlint.analysis.facts.calls_by_name import UnknownCallersError, known_calls
from memlint.analysis.index.program import Function
from memlint.ir import nodes as ir

if TYPE_CHECKING:
    from memlint.analysis.facts.analyser import Analyser


def passed_for(analyser: Analyser, function: Function, name: str) -> list[tuple[Function, ir.Expr]]:
    """The expressions that all calls pass for a parameter, each with its function: the caller, or for a default the
    function itself. Empty if no call is found. Raises UnknownCallersError, also if what a
    call passes is not known."""
    index = next(i for i, param in enumerate(function.params) if param.name == name)
    param = function.params[index]
    bound = 1 if function.takes_self else 0
    if param.kind in ("star", "double-star") or index < bound:
        raise UnknownCallersError
    found = []
    for caller, call in known_calls(analyser, function):
        if any(isinstance(arg, ir.Starred) for arg in call.args):
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
