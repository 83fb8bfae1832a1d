"""Calls that keep all members of an iterable (``list(map(f, xs))``), rewritten as the equivalent comprehensions."""

from __future__ import annotations

from memlint.analysis.syntax.bindings import reads_any
from memlint.analysis.syntax.memo import kept
from memlint.ir import nodes as ir

#: builtins that put all members of their argument into a container or a sum
_COLLECTORS = frozenset({"list", "tuple", "set", "sorted", "sum"})


def collects(func: ir.Expr) -> bool:
    """Whether a call of this function keeps all members of its argument: in a new container, in an existing one, or
    in a sum."""
    return func.id in _COLLECTORS if isinstance(func, ir.Name) else isinstance(func, ir.Attr) and func.name == "extend"


@kept
def listed(given: ir.Expr) -> ir.Expr:
    """``f(x) for x in xs`` and ``map(f, xs)`` as a list comprehension; other expressions unchanged."""
    if isinstance(given, ir.Comprehension) and given.kind == "generator":
        return ir.Comprehension(given.at, "collected", given.element, None, given.fors)
    if (
        isinstance(given, ir.Call)
        and isinstance(given.func, ir.Name)
        and given.func.id == "map"
        and len(given.args) == 2
        and not given.keywords
        and not any(isinstance(arg, ir.Starred) for arg in given.args)
    ):
        mapped, over = given.args
        free = "item"
        while reads_any(mapped, {free}):  # ``map(item.score, xs)`` reads a variable of that name
            free += "_"
        name = ir.Name(given.at, free)
        made: ir.Expr = ir.Call(given.at, mapped, (name,), ())
        if isinstance(mapped, ir.Lambda) and len(mapped.params) == 1 and mapped.params[0].kind == "positional":
            name, made = ir.Name(given.at, mapped.params[0].name), mapped.body
        return ir.Comprehension(given.at, "collected", made, None, (ir.CompFor(name, over, (), False),))
    return given


@kept
def members_of(given: ir.Expr) -> ir.Comprehension:
    """``list(xs)`` as the comprehension ``[item for item in xs]``."""
    item = ir.Name(given.at, "item")
    return ir.Comprehension(given.at, "collected", item, None, (ir.CompFor(item, given, (), False),))
