"""The context of a numeric expression: a function, its known arguments, and the attributes of its object."""

from __future__ import annotations

from collections.abc import Iterator

from memlint.analysis.index.program import Function
from memlint.analysis.syntax.syntax import dotted, walk_statements
from memlint.ir import nodes as ir

#: an upper bound, or a list of them; None for unknown
Known = int | tuple[int | None, ...] | None


class Scope:
    """The context of a numeric expression: a function, its arguments (None for unknown ones), and the attributes of its
    object with the scopes that assign them."""

    def __init__(self, function: Function, given: dict[str, Known] | None = None) -> None:
        self.function = function
        self.given = given
        self.held: dict[str, list[tuple[ir.Expr, Scope]]] = {}


def attributes_of(scopes: list[Scope]) -> dict[str, list[tuple[ir.Expr, Scope]]]:
    """By attribute, the values that the methods of a class assign, with their scopes."""
    held: dict[str, list[tuple[ir.Expr, Scope]]] = {}
    for scope in scopes:
        for statement in walk_statements(scope.function.body, into_definitions=False):
            if isinstance(statement, ir.Assign):
                targets, value = statement.targets, statement.value
            elif isinstance(statement, ir.AugAssign):
                targets, value = (statement.target,), ir.Const(statement.at, "Ellipsis", None)
            else:
                continue
            for target, one in bound_pairs(targets, value):
                if isinstance(target, ir.Attr) and dotted(target.value) == scope.function.own_name:
                    held.setdefault(target.name, []).append((one, scope))
    return held


def bound_pairs(targets: tuple[ir.Expr, ...], value: ir.Expr) -> Iterator[tuple[ir.Expr, ir.Expr]]:
    """The targets of an assignment, each with its value: ``self.a, self.b = a, b``. If the value cannot be split, each
    target gets the whole."""
    for target in targets:
        if not isinstance(target, ir.Display):
            yield target, value
            continue
        same = isinstance(value, ir.Display) and len(value.elements) == len(target.elements)
        for number, inner in enumerate(target.elements):
            yield inner, value.elements[number] if same and isinstance(value, ir.Display) else value
