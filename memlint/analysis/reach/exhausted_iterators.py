"""Iterators that are exhausted before an optimizer gets them, which then raises as it gets no parameters."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from memlint.analysis.index.function import Function
from memlint.analysis.index.mentions import bound_to
from memlint.analysis.index.program import Program
from memlint.analysis.syntax.expression_text import text
from memlint.analysis.syntax.memo import kept_for
from memlint.analysis.syntax.syntax import calls
from memlint.ir import nodes as ir

#: functions that exhaust an iterator
_GOES_THROUGH = frozenset({"sum", "list", "tuple", "set", "max", "min", "sorted", "dict"})
_MAKES_ITERATOR = frozenset({"filter", "map", "zip", "iter", "chain"})
_GENERATORS = frozenset({"parameters", "named_parameters", "buffers"})


def used_up(program: Program, function: Function, evaluated: Callable[[], Sequence[ir.Expr | ir.Raise]]) -> str:
    """The clause for an optimizer that certainly gets an exhausted iterator: ``params = net.parameters();
    print(sum(p.numel() for p in params)); Adam(params)``. "" for none. ``evaluated``: the expressions that are
    certainly evaluated."""
    made = _made_of_iterators(program, function)
    if not made:
        return ""
    parts = evaluated()
    spent: dict[str, ir.Expr] = {}
    for part in parts:
        name = _gone_through(part)
        if name and not isinstance(part, ir.Raise) and (name not in spent or part.at < spent[name].at):
            spent[name] = part
    for part in parts if spent else ():
        given = made.get(part.at) if isinstance(part, ir.Call) else None
        before = spent.get(given) if given is not None else None
        if before is not None and before.at <= part.at and isinstance(part, ir.Call):
            return f"`{given}` is used up by `{text(before, 40)}` when `{text(part.func)}()` gets it"
    return ""


@kept_for
def _made_of_iterators(program: Program, function: Function) -> dict[int, str]:
    """By ordinal of the call, the name of the iterator from which an optimizer is made."""
    return {
        call.at: call.args[0].id
        for call in calls(function.body)
        if call.args
        and isinstance(call.args[0], ir.Name)
        and _is_iterator(function, call.args[0].id)
        and program.outside(function.module, call.func, function).startswith("torch.optim.")
    }


def _gone_through(part: ir.Expr | ir.Raise) -> str:
    """The name of the iterable that an expression exhausts; "" for none."""
    if isinstance(part, ir.Comprehension):
        inner = part if part.kind != "generator" else None
    elif isinstance(part, ir.Call) and isinstance(part.func, ir.Name) and part.func.id in _GOES_THROUGH and part.args:
        first = part.args[0]
        if isinstance(first, ir.Name):
            return first.id
        inner = first if isinstance(first, ir.Comprehension) else None
    else:
        return ""
    source = inner.fors[0].iter if inner is not None else None
    return source.id if isinstance(source, ir.Name) else ""


def _is_iterator(function: Function, name: str) -> bool:
    """Whether a name is bound once, to an iterator."""
    bound = bound_to(function.module.text).get(name, [])
    made = bound[0] if len(bound) == 1 else None
    if isinstance(made, ast.GeneratorExp):
        return True
    if not isinstance(made, ast.Call):
        return False
    if isinstance(made.func, ast.Name):
        return made.func.id in _MAKES_ITERATOR and made.func.id not in bound_to(function.module.text)
    return isinstance(made.func, ast.Attribute) and made.func.attr in _GENERATORS and not made.args
