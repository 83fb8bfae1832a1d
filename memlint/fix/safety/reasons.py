"""Why a value is unknown: the call or variable that it comes from, in words for the reader of a fix."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from memlint.analysis.index.program import Function
from memlint.analysis.syntax.bindings import names_read
from memlint.analysis.syntax.expression_text import text
from memlint.analysis.syntax.memo import kept
from memlint.analysis.syntax.syntax import dotted, is_name, walk_statements
from memlint.fix.safety.origins import resolve
from memlint.ir import nodes as ir

if TYPE_CHECKING:
    from memlint.analysis.facts.analyser import Analyser

#: the most functions and assignments that are followed
MAX_STEPS = 24


def unresolved(analyser: Analyser, function: Function, expr: ir.Expr) -> str:
    """The unresolved origin of an expression's value, as a clause; "" if none is found."""
    todo: list[tuple[Function, ir.Expr]] = [(function, expr)]
    seen: set[tuple[tuple[str, str], int]] = set()
    while todo and len(seen) < MAX_STEPS:
        within, part = todo.pop(0)
        if (within.key, part.at) in seen:
            continue
        seen.add((within.key, part.at))
        match part:
            case ir.Name(id=name):
                assigned = list(_assigned(analyser, within, name))
                if not assigned and any(param.name == name for param in within.params):
                    return f"`{name}` is a parameter of `{within.name}`"
                todo += assigned
            case ir.Call():
                kind, what = resolve(analyser, within, part.func)
                if kind == "function" and isinstance(what, Function):
                    todo += [(what, value) for value in _returned(what)]
                elif isinstance(part.func, ir.Attr) and _is_value(within, part.func.value):
                    todo.append((within, part.func.value))
                else:
                    return f"`{text(part.func, 40)}` is not resolved"
            case ir.Binary():
                todo += [(within, part.left), (within, part.right)]
            case ir.Unary():
                todo.append((within, part.operand))
            case ir.IfExp():
                todo += [(within, part.body), (within, part.orelse)]
            case ir.Subscript():
                todo.append((within, part.value))
            case ir.Attr():
                return f"`{text(part, 40)}` is not resolved"
    return ""


def _is_value(function: Function, receiver: ir.Expr) -> bool:
    """Whether the receiver of a method is a value of the function, not a module or object that defines it."""
    root = dotted(receiver).partition(".")[0]
    own = function.params[0].name if function.takes_self and function.params else ""
    return not root or (root in function.locals and root != own)


def _assigned(analyser: Analyser, function: Function, name: str) -> Iterator[tuple[Function, ir.Expr]]:
    """The expressions that are assigned to a variable, each with its function: for a tuple that a function of the
    project returns, the member."""
    for statement in _assigning(function.body).get(name, ()):
        for target in statement.targets:
            if is_name(target, name):
                yield function, statement.value
            elif isinstance(target, ir.Display):
                index = next((at for at, one in enumerate(target.elements) if is_name(one, name)), None)
                if index is not None:
                    yield from _members(analyser, function, statement.value, index)


@kept
def _assigning(body: tuple[ir.Stmt, ...]) -> dict[str, list[ir.Assign]]:
    """The assignments of a body by the names in their targets."""
    found: dict[str, list[ir.Assign]] = {}
    for statement in walk_statements(body, into_definitions=False):
        if isinstance(statement, ir.Assign):
            for name in frozenset[str]().union(*map(names_read, statement.targets)):
                found.setdefault(name, []).append(statement)
    return found


def _members(analyser: Analyser, function: Function, value: ir.Expr, index: int) -> Iterator[tuple[Function, ir.Expr]]:
    values = [value]
    if isinstance(value, ir.Call):
        kind, what = resolve(analyser, function, value.func)
        if kind == "function" and isinstance(what, Function):
            function, values = what, _returned(what)
    for one in values:
        yield function, one.elements[index] if isinstance(one, ir.Display) and index < len(one.elements) else one


def _returned(function: Function) -> list[ir.Expr]:
    statements = walk_statements(function.body, into_definitions=False)
    return [one.value for one in statements if isinstance(one, ir.Return) and one.value is not None]
