"""The uses of a stored copy of a model: whether it runs, is bounded, or leaves the device."""

from __future__ import annotations

from collections.abc import Iterable

from memlint.sdk.project import Function
from memlint.sdk.syntax import calls, ir, names_read, parts, text, walk_expression, walk_statements

#: methods that remove members of a container
_BOUNDS = frozenset({"pop", "popleft", "clear", "remove", "heappop", "heapreplace", "heappushpop"})


def leaves_the_device(function: Function, place: ir.Expr) -> bool:
    """Whether a function moves the copy to the host: ``best.cpu()``, ``best.to("cpu")``."""
    return any(
        isinstance(call.func, ir.Attr) and call.func.name in ("cpu", "to") and text(call.func.value) == text(place)
        for call in calls(function.body)
    )


def is_bounded(function: Function, place: str) -> bool:
    """Whether the function limits the number of members, or tests it."""
    for part in parts(function.body):
        if isinstance(part, ir.Call):
            if isinstance(part.func, ir.Attr) and part.func.name in _BOUNDS and text(part.func.value) == place:
                return True
            if part.args and text(part.func) in ("len", "heapq.heappop", "heappop") and text(part.args[0]) == place:
                return True
            if text(part.func).endswith("deque"):
                return True
    return any(
        isinstance(one, ir.Delete) and any(text(target).startswith(f"{place}[") for target in one.targets)
        for one in walk_statements(function.body)
    )


def run_as_models(function: Function, place: ir.Expr) -> bool:
    """Whether the members of a container run (``for model in models: model(x)``), and so have to be on the device."""
    shown = text(place)
    searched = list(function.cls.methods.values()) if function.cls is not None else [function]
    for one in searched:
        for statement in walk_statements(one.body):
            if not isinstance(statement, ir.For) or shown not in text(statement.iter, 200):
                continue
            if _calls_one_of(statement.target, calls(statement.body)):
                return True
        for part in parts(one.body):
            if isinstance(part, ir.Comprehension) and any(shown in text(item.iter, 200) for item in part.fors):
                inside = (inner for inner in walk_expression(part.element) if isinstance(inner, ir.Call))
                if _calls_one_of(part.fors[0].target, inside):
                    return True
    return False


def _calls_one_of(target: ir.Expr, made: Iterable[ir.Call]) -> bool:
    """Whether one of the calls calls a name that a target binds."""
    names = names_read(target)
    return any(isinstance(call.func, ir.Name) and call.func.id in names for call in made)
