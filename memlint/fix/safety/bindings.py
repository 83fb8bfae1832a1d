"""Whether the value of a variable is not shared, by the text of its function."""

from __future__ import annotations

from memlint.analysis.index.binders import binders, binds
from memlint.analysis.index.program import Function
from memlint.analysis.syntax.memo import kept_for
from memlint.analysis.syntax.syntax import dotted, walk_statements
from memlint.fix.safety import vocabulary as words
from memlint.ir import nodes as ir


@kept_for
def _values_of(function: Function, name: str) -> tuple[ir.Expr, ...] | None:
    """The expressions that a function assigns to a variable; None if another statement binds it."""
    if any(param.name == name for param in function.params):
        return None
    for statement in walk_statements(function.body, into_definitions=False):
        if isinstance(statement, ir.For) and binds(statement.target, name):
            return None
    updates = {
        statement.value.at
        for statement in walk_statements(function.body, into_definitions=False)
        if isinstance(statement, ir.AugAssign)
    }
    values = binders(function, name)
    return None if values is None else tuple([value for value in values if value.at not in updates])


def is_container(function: Function, expr: ir.Expr) -> bool:
    """Whether a variable holds a list or a dictionary on all paths."""
    if isinstance(expr, ir.Display | ir.DictDisplay | ir.Comprehension):
        return True
    values = _values_of(function, expr.id) if isinstance(expr, ir.Name) else None
    return bool(values) and all(
        isinstance(value, ir.Display | ir.DictDisplay | ir.Comprehension)
        or (isinstance(value, ir.Call) and dotted(value.func).rsplit(".", 1)[-1] in words.CONTAINERS)
        for value in values or ()
    )


def is_sum(function: Function, target: ir.Expr) -> bool:
    """Whether a variable starts as a number or a new tensor, so that an update in place affects no other variable."""
    values = _values_of(function, target.id) if isinstance(target, ir.Name) else None
    return bool(values) and all(
        isinstance(value, ir.Const | ir.Binary | ir.Unary)
        or (isinstance(value, ir.Call) and dotted(value.func).rsplit(".", 1)[-1] in words.MAKES_NEW)
        for value in values or ()
    )
