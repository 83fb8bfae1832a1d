"""Signatures: which methods a value has, whether a call fits a signature, and the value of each parameter."""

from __future__ import annotations

from memlint.analysis.domain.state import State
from memlint.analysis.domain.summary.function_state import FunctionState
from memlint.analysis.domain.values import (
    CONTAINER,
    DATA,
    NONE,
    NOTHING,
    SCALAR,
    UNKNOWN,
    UNKNOWN_VALUE,
    Args,
    V,
    Words,
    join,
    join_all,
    ordered,
)
from memlint.analysis.index.program import Function
from memlint.analysis.syntax.syntax import dotted
from memlint.analysis.transfer.heap import make, read_item
from memlint.analysis.transfer.stores.class_places import default_place
from memlint.ir import nodes as ir


def methods_of(fn: FunctionState, value: V, name: str) -> list[Function | None]:
    """By project class of which the value may be an instance, its method of that name; None for a class without one."""
    classes = [cls for ref in ordered(value.refs) if ref.kind == "instance" and (cls := fn.analyser.cls(ref))]
    return [fn.analyser.program.method(cls, name) for cls in classes]


def only_method(fn: FunctionState, value: V, name: str) -> Function | None:
    """The method of that name, where the value is an instance of one project class that has one; else None."""
    methods = methods_of(fn, value, name)
    return methods[0] if len(methods) == 1 else None


def is_abstract(function: Function) -> bool:
    """Whether a method must be overridden: its body is empty, or raises (or returns) NotImplementedError."""
    if "abstractmethod" in function.decorator_names:
        return True
    body = [item for item in function.body if not (isinstance(item, ir.ExprStmt) and isinstance(item.value, ir.Const))]
    if len(body) > 1 or not body:
        return not body
    only = body[0]
    raised_value = only.exc if isinstance(only, ir.Raise) else only.value if isinstance(only, ir.Return) else None
    if raised_value is not None:
        raised = raised_value.func if isinstance(raised_value, ir.Call) else raised_value
        return dotted(raised).endswith("NotImplementedError")
    return isinstance(only, ir.Jump)


def is_idle(fn: FunctionState, function: Function) -> bool:
    """Whether a method does nothing, and no subclass overrides it."""
    cls = function.cls
    return cls is not None and is_abstract(function) and not fn.analyser.program.is_overridden(cls, function.name)


def is_left_open(fn: FunctionState, function: Function) -> bool:
    """Whether a method's own body does not tell what runs in its place: it is abstract, and its overrides are
    unresolved or too many. (An empty method that nothing overrides is an unused hook.)"""
    if function.cls is None or not is_abstract(function):
        return False
    declared = "abstractmethod" in function.decorator_names or any(isinstance(one, ir.Raise) for one in function.body)
    program = fn.analyser.program
    return not program.overrides(function.cls, function.name) and (
        declared or program.is_overridden(function.cls, function.name)
    )


def bind(
    fn: FunctionState, state: State, function: Function, args: Args, words: Words, *, starred: bool = False
) -> dict[str, V]:
    """The values of the parameters by name. ``starred``: one of the arguments is ``*args``."""
    bound: dict[str, V] = {}
    rest = list(args)
    spread = any(name.startswith("**") for name in words)
    for param in function.params:
        if param.kind == "star":
            # a starred argument has any number of members
            positions = {} if starred else {str(at): value for at, value in enumerate(rest)}
            joined = join_all(rest) if starred else NOTHING
            rest = []
            bound[param.name] = make(fn, state, (param.at, "star", function.key), "tuple", joined, positions)
        elif param.kind == "double-star":
            extra = {name: value for name, value in words.items() if name not in bound}
            bound[param.name] = make(fn, state, (param.at, "words", function.key), "dict", NOTHING, extra)
        elif param.kind != "keyword-only" and rest:
            bound[param.name] = rest.pop(0)
        elif param.name in words:
            bound[param.name] = words[param.name]
        else:
            default = UNKNOWN_VALUE
            if param.default is not None:
                default = fn.analyser.evaluate_constant(function.module, param.default)
                shared = default_place(function, param)
                default = default if shared is None else V(CONTAINER, syms=frozenset((shared,)))
            if spread and default.is_only(DATA | NONE | UNKNOWN):
                default = join(UNKNOWN_VALUE, _spread(fn, state, param, words))
            bound[param.name] = default
    return bound


def _spread(fn: FunctionState, state: State, param: ir.Param, words: Words) -> V:
    """What ``**outputs`` may pass to a parameter that has a graph."""
    index = ir.Const(param.at, "str", param.name)
    subscript = ir.Subscript(param.at, index, index)
    passed = [
        read_item(fn, state, value, V(DATA, size=SCALAR, const=param.name), subscript)
        for word, value in words.items()
        if word.startswith("**")
    ]
    return join_all([value for value in passed if value.src])


def accepts(function: Function, count: int, words: set[str]) -> bool:
    """Whether a call with this number of positional arguments and these keywords fits the signature."""
    positional = [p for p in function.params if p.kind in ("positional", "positional-only")]
    names = {p.name for p in function.params}
    star = any(p.kind == "star" for p in function.params)
    double = any(p.kind == "double-star" for p in function.params)
    needed = [p for p in positional if p.default is None]
    if count > len(positional) and not star:
        return False
    if not double and any(not word.startswith("**") and word not in names for word in words):
        return False
    return count + len(words) >= len(needed)
