"""Functions that a server, a bot, a queue or a user interface calls for each request, as the code around them shows."""

from __future__ import annotations

from collections.abc import Iterator

from memlint import knowledge
from memlint.analysis.index.definitions import Module, functions_of
from memlint.analysis.index.function import Function
from memlint.analysis.syntax.memo import kept_for
from memlint.analysis.syntax.syntax import calls, last_name
from memlint.ir import nodes as ir

#: methods of an application that register the function under them for requests to a path
_REGISTERS = frozenset({"route", "api_route", "get", "post", "put", "delete", "patch", "websocket"})


def is_route(decorator: ir.Expr) -> bool:
    """``@app.post("/predict")``"""
    if not isinstance(decorator, ir.Call) or not decorator.args:
        return False
    path = decorator.args[0]
    return last_name(decorator.func) in _REGISTERS and isinstance(path, ir.Const) and str(path.value).startswith("/")


@kept_for
def serves(function: Function) -> bool:
    """Whether a runtime calls a function for each request, message, task or event. It may be called once in the life of
    the process, or without end."""
    if function.node is None or any(map(is_route, function.decorators)):
        return function.node is not None
    return any(_is_by(entry, function) for entry in _entries_of(function.module))


@kept_for
def _entries_of(module: Module) -> tuple[knowledge.Entry, ...]:
    """What runtimes call of a file's functions, by the packages that it imports and what else it defines."""
    packages = {one.module.partition(".")[0] for one in module.index.imports if not one.level}
    return tuple(
        one
        for one in knowledge.entries()
        if (not one.imports or not one.imports.isdisjoint(packages))
        and (not one.beside or module.function(one.beside) is not None)
    )


def _is_by(entry: knowledge.Entry, function: Function) -> bool:
    if entry.methods and function.name not in entry.methods:
        return False
    if entry.first and function.cls is None and function.enclosing is None and function.params:
        return function.params[0].name == entry.first
    node = function.node if not entry.of_class else function.cls.node if function.cls is not None else None
    if isinstance(node, ir.FunctionDef | ir.ClassDef) and any(
        last_name(one.func if isinstance(one, ir.Call) else one) in entry.decorators for one in node.decorators
    ):
        return True
    if entry.given_to and (function.name, function.cls is not None) in _given(function.module, entry.given_to):
        return True
    return bool(entry.methods) and not entry.decorators and function.cls is None and function.enclosing is None


@kept_for
def _given(module: Module, to: frozenset[str]) -> frozenset[tuple[str, bool]]:
    """The names of what a file passes to calls of these names, each with whether it is an attribute, as a method is."""
    return frozenset(
        (last_name(part), isinstance(part, ir.Attr))
        for function in functions_of(module)
        for call in calls(function.body)
        if last_name(call.func) in to
        for part in _passed(call)
    )


def _passed(call: ir.Call) -> Iterator[ir.Expr]:
    """The names among a call's arguments, and in containers and other calls' arguments among them: what ``partial(f)``
    or ``{"handler": f}`` passes on."""
    todo = [*call.passed]
    while todo:
        part = todo.pop()
        match part:
            case ir.Name() | ir.Attr():
                yield part
            case ir.Call():
                todo.extend(part.passed)
            case ir.Display(elements=inside) | ir.DictDisplay(values=inside):
                todo.extend(inside)
