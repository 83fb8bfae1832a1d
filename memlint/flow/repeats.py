"""What repeats a function: loops around its callers, hooks of a framework."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memlint.flow.events import Loop, Site
from memlint.flow.program import Function

if TYPE_CHECKING:
    from memlint.flow.analyser import Analyser

#: how far callers of callers are followed
MAX_DEPTH = 5


def repeated(analyser: Analyser, function: Function) -> Loop | None:
    """The repetition of a function's calls, where a loop around a call or a framework's row shows one."""
    return each_call(function) if _in_loop(analyser, function, frozenset()) else None


def each_call(function: Function) -> Loop:
    """The repetition of a function's calls, wherever they are."""
    at = function.node.at if function.node is not None else 0
    site = Site(function.module.key, function.unit, at)
    return Loop("calls", "unknown", "iteration", None, f"each call of {function.name}", site)


def _in_loop(analyser: Analyser, function: Function, trail: frozenset[tuple[str, str]]) -> bool:
    if function.node is None or function.key in trail or len(trail) > MAX_DEPTH:
        return False
    hook = analyser.hook(function)
    if hook is not None:
        return hook.every == "iteration"
    inner = trail | {function.key}
    calls = analyser.facts.calls_of(function)
    return any(record.counts or _in_loop(analyser, caller.function, inner) for caller, record in calls)


def layer_code(analyser: Analyser, function: Function) -> bool:
    """Whether the function is (inside) a module's forward: its loops run over layers, heads or time steps."""
    around: Function | None = function
    while around is not None:
        if around.cls is not None and around.name in ("forward", "__call__") and analyser.program.is_module(around.cls):
            return True
        around = around.enclosing
    return False
