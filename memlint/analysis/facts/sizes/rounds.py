"""The iterables of a body's loops and comprehensions, and the calls and names in them."""

from __future__ import annotations

from collections.abc import Iterator

from memlint.analysis.domain.bound_names import bindings
from memlint.analysis.syntax.memo import kept
from memlint.analysis.syntax.syntax import calls, last_name, loops_around, parts, walk_expression, walk_statements
from memlint.analysis.transfer.library.extent_ops import literal
from memlint.ir import nodes as ir


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
