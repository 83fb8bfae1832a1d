"""The context of a numeric expression: a function, its known arguments, and the attributes of its object."""

from __future__ import annotations

from collections.abc import Iterator

from memlint.analysis.domain.bound_names import bindings
from memlint.analysis.index.program import Function
from memlint.analysis.syntax.memo import kept
from memlint.analysis.syntax.syntax import (
    calls,
    dotted,
    last_name,
    loops_around,
    parts,
    walk_expression,
    walk_statements,
)
from memlint.analysis.transfer.library.extent_ops import literal
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


def calls_in_rounds(body: tuple[ir.Stmt, ...]) -> Iterator[tuple[ir.Call, list[ir.Expr | None]]]:
    """The calls of a body, each with the iterables of the loops and comprehensions around it; None for a while loop and
    for a comprehension of several clauses."""
    comprehended: dict[int, list[ir.Expr | None]] = {}
    for part in parts(body):
        if isinstance(part, ir.Comprehension):
            iterated = part.fors[0].iter if len(part.fors) == 1 else None
            for inner in walk_expression(part.element):
                comprehended.setdefault(inner.at, []).append(iterated)
    for call in calls(body):
        around = [loop.iter if isinstance(loop, ir.For) else None for loop in loops_around(body, call.at)]
        yield call, around + comprehended.get(call.at, [])


def rounds_of(body: tuple[ir.Stmt, ...], name: str) -> list[ir.Expr | None]:
    """The iterables whose members a name is bound to by loops and comprehensions; None for an unknown one."""
    return _rounds(body).get(name, [])


@kept
def _rounds(body: tuple[ir.Stmt, ...]) -> dict[str, list[ir.Expr | None]]:
    found: dict[str, list[ir.Expr | None]] = {}
    for target, shown in iterations(body):
        over = bound_once(body, shown)
        if isinstance(target, ir.Name):
            found.setdefault(target.id, []).append(over)
        elif isinstance(target, ir.Display):
            made = last_name(over.func) if isinstance(over, ir.Call) else ""
            members = over.args if isinstance(over, ir.Call) and made == "zip" else ()
            if isinstance(over, ir.Call) and made == "enumerate":
                members = (ir.Const(over.at, "Ellipsis", None), *over.args[:1])
            for position, inner in enumerate(target.elements):
                member = members[position] if position < len(members) else None
                for part in walk_expression(inner):
                    if isinstance(part, ir.Name):
                        found.setdefault(part.id, []).append(member if part is inner else None)
    return found


def bound_once(body: tuple[ir.Stmt, ...], expr: ir.Expr) -> ir.Expr:
    """The value of a name that a single statement binds (``pairs = zip(sizes, sizes[1:])``); else the expression
    itself."""
    bound = bindings(body).get(expr.id, []) if isinstance(expr, ir.Name) else []
    return bound[0][0] if len(bound) == 1 and not bound[0][1] else expr


def iterations(body: tuple[ir.Stmt, ...]) -> Iterator[tuple[ir.Expr, ir.Expr]]:
    """The targets of loops and comprehensions with their iterables."""
    for statement in walk_statements(body, into_definitions=False):
        if isinstance(statement, ir.For):
            yield statement.target, statement.iter
    for part in parts(body):
        if isinstance(part, ir.Comprehension):
            yield from ((clause.target, clause.iter) for clause in part.fors)


def limits(made: ir.Call) -> tuple[ir.Expr, ...]:
    """The upper bounds of a range: its end, and its start as well if it may count down."""
    if len(made.args) < 3:
        return made.args[-1:]
    step = literal(made.args[2])
    return made.args[1:2] if step is not None and step > 0 else made.args[:2]
