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
def listed(iterable: ir.Expr) -> ir.Expr:
    """``f(x) for x in xs`` and ``map(f, xs)`` as a list comprehension; other expressions unchanged."""
    if isinstance(iterable, ir.Comprehension) and iterable.kind == "generator":
        return ir.Comprehension(iterable.at, "collected", iterable.element, None, iterable.fors)
    if (
        isinstance(iterable, ir.Call)
        and isinstance(iterable.func, ir.Name)
        and iterable.func.id == "map"
        and len(iterable.args) == 2
        and not iterable.keywords
        and not any(isinstance(arg, ir.Starred) for arg in iterable.args)
    ):
        mapped, over = iterable.args
        free = "item"
        while reads_any(mapped, {free}):  # ``map(item.score, xs)`` reads a variable of that name
            free += "_"
        name = ir.Name(iterable.at, free)
        made: ir.Expr = ir.Call(iterable.at, mapped, (name,), ())
        if isinstance(mapped, ir.Lambda) and len(mapped.params) == 1 and mapped.params[0].kind == "positional":
            name, made = ir.Name(iterable.at, mapped.params[0].name), mapped.body
        return ir.Comprehension(iterable.at, "collected", made, None, (ir.CompFor(name, over, (), False),))
    return iterable


@kept
def members_of(iterable: ir.Expr) -> ir.Comprehension:
    """``list(xs)`` as the comprehension ``[item for item in xs]``."""
    item = ir.Name(iterable.at, "item")
    return ir.Comprehension(iterable.at, "collected", item, None, (ir.CompFor(item, iterable, (), False),))
