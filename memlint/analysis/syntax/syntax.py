"""Traversal of the IR: statements, blocks, expressions, calls."""

from __future__ import annotations

import itertools
import operator
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple, TypeGuard

from memlint.analysis.syntax.memo import kept
from memlint.ir import nodes as ir


def bodies(statement: ir.Stmt) -> tuple[tuple[ir.Stmt, ...], ...]:
    """The blocks of a compound statement (of definitions too)."""
    blocks = _BLOCKS.get(type(statement))
    return blocks(statement) if blocks is not None else ()


_BLOCKS: dict[type, Callable[[Any], tuple[tuple[ir.Stmt, ...], ...]]] = {
    ir.If: lambda statement: (statement.body, statement.orelse),
    ir.For: lambda statement: (statement.body, statement.orelse),
    ir.While: lambda statement: (statement.body, statement.orelse),
    ir.With: lambda statement: (statement.body,),
    ir.FunctionDef: lambda statement: (statement.body,),
    ir.ClassDef: lambda statement: (statement.body,),
    ir.Try: lambda statement: (
        statement.body,
        *[handler.body for handler in statement.handlers],
        statement.orelse,
        statement.final,
    ),
    ir.Match: lambda statement: tuple([case.body for case in statement.cases]),
}


def walk_statements(body: tuple[ir.Stmt, ...], into_definitions: bool = True) -> Iterator[ir.Stmt]:
    """All statements of a body and its blocks, in source order."""
    stack = [*reversed(body)]
    while stack:
        statement = stack.pop()
        yield statement
        kind = type(statement)
        if kind in _BLOCKS and (into_definitions or (kind is not ir.FunctionDef and kind is not ir.ClassDef)):
            for block in reversed(_BLOCKS[kind](statement)):
                stack.extend(reversed(block))


def block_at(statement: ir.Stmt, at: int) -> tuple[ir.Stmt, ...]:
    """The block of a compound statement that contains an ordinal; () if its header does."""
    return next((block for block in reversed(bodies(statement)) if block and block[0].at <= at), ())


def dotted(expr: ir.Expr) -> str:
    """``a.b.c`` of names and attributes, else an empty string."""
    parts: list[str] = []
    while isinstance(expr, ir.Attr):
        parts.append(expr.name)
        expr = expr.value
    if not isinstance(expr, ir.Name):
        return ""
    parts.append(expr.id)
    return ".".join(reversed(parts))


def last_name(expr: ir.Expr) -> str:
    """The last component of a name or attribute (``c`` of ``f().b.c``); "" for another expression."""
    return expr.name if isinstance(expr, ir.Attr) else expr.id if isinstance(expr, ir.Name) else ""


def under_calls(expr: ir.Expr, methods: AbstractSet[str]) -> ir.Expr:
    """The expression on which a chain of calls of these methods begins: ``x`` of ``x.cpu().float()``."""
    while isinstance(expr, ir.Call) and isinstance(expr.func, ir.Attr) and expr.func.name in methods:
        expr = expr.func.value
    return expr


DEFINITIONS = (ir.FunctionDef, ir.ClassDef)


def expressions(statement: ir.Stmt) -> tuple[ir.Expr, ...]:
    """The expressions that belong to a statement itself, not to its blocks."""
    own = _OWN.get(type(statement))
    return own(statement) if own is not None else ()


_OWN: dict[type, Callable[[Any], tuple[ir.Expr, ...]]] = {
    ir.Assign: lambda statement: (*statement.targets, statement.value),
    ir.AugAssign: lambda statement: (statement.target, statement.value),
    ir.AnnAssign: lambda statement: (
        (statement.target,) if statement.value is None else (statement.target, statement.value)
    ),
    ir.ExprStmt: lambda statement: (statement.value,),
    ir.Return: lambda statement: () if statement.value is None else (statement.value,),
    ir.Raise: lambda statement: () if statement.exc is None else (statement.exc,),
    ir.Delete: lambda statement: statement.targets,
    ir.Assert: lambda statement: (statement.test,),
    ir.If: lambda statement: (statement.test,),
    ir.While: lambda statement: (statement.test,),
    ir.For: lambda statement: (statement.target, statement.iter),
    ir.With: lambda statement: tuple([item.context for item in statement.items]),
    ir.Match: lambda statement: (statement.subject,),
}


def children(expr: ir.Expr) -> tuple[ir.Expr, ...]:
    """The direct parts of an expression."""
    parts = PARTS.get(type(expr))
    return parts(expr) if parts is not None else ()


def _comprehension(expr: ir.Comprehension) -> tuple[ir.Expr, ...]:
    parts = [expr.element] if expr.key is None else [expr.key, expr.element]
    for one in expr.fors:
        parts += [one.iter, *one.ifs]
    return tuple(parts)


#: by type, as a chain of tests would be slow for names and constants, the most frequent ones
PARTS: dict[type, Callable[[Any], tuple[ir.Expr, ...]]] = {
    ir.Attr: lambda expr: (expr.value,),
    ir.Starred: lambda expr: (expr.value,),
    ir.Await: lambda expr: (expr.value,),
    ir.Call: lambda expr: (
        (expr.func, *expr.args, *[keyword.value for keyword in expr.keywords])
        if expr.keywords
        else (expr.func, *expr.args)
    ),
    ir.Subscript: lambda expr: (expr.value, expr.index),
    ir.Slice: lambda expr: tuple([part for part in (expr.lower, expr.upper, expr.step) if part is not None]),
    ir.Binary: lambda expr: (expr.left, expr.right),
    ir.BoolOp: lambda expr: (expr.left, expr.right),
    ir.Unary: lambda expr: (expr.operand,),
    ir.Compare: lambda expr: (expr.left, *expr.rights),
    ir.IfExp: lambda expr: (expr.test, expr.body, expr.orelse),
    ir.Display: lambda expr: expr.elements,
    ir.DictDisplay: lambda expr: (*[key for key in expr.keys if key is not None], *expr.values),
    ir.Comprehension: _comprehension,
    ir.Walrus: lambda expr: (expr.target, expr.value),
    ir.Yield: lambda expr: (expr.value,) if expr.value is not None else (),
    ir.FormattedString: lambda expr: expr.parts,
}


def walk_expression(expr: ir.Expr) -> Iterator[ir.Expr]:
    """The expression and all its parts, without the bodies of lambdas."""
    todo = [expr]
    while todo:
        part = todo.pop()
        yield part
        parts = PARTS.get(type(part))
        if parts is not None:
            todo.extend(parts(part))


class Begins(NamedTuple):
    """The statements of a body and its blocks in source order: the ordinal of each, its block and position in it, and
    the index of the statement around it (-1 for none)."""

    ordinals: list[int]
    statements: list[ir.Stmt]
    blocks: list[tuple[tuple[ir.Stmt, ...], int]]
    around: list[int]


@kept
def begins(body: tuple[ir.Stmt, ...]) -> Begins:
    found = Begins([], [], [], [])
    todo = [(body, number, -1) for number in reversed(range(len(body)))]
    while todo:
        block, number, around = todo.pop()
        place = len(found.ordinals)
        found.ordinals.append(block[number].at)
        found.statements.append(block[number])
        found.blocks.append((block, number))
        found.around.append(around)
        for inner in reversed(bodies(block[number])):
            todo.extend((inner, each, place) for each in reversed(range(len(inner))))
    return found


def statement_at(body: tuple[ir.Stmt, ...], at: int) -> ir.Stmt | None:
    """The innermost statement of a body that contains an ordinal; None if there is none."""
    begun = begins(body)
    place = bisect_right(begun.ordinals, at) - 1
    if place < 0:
        return None
    best = begun.statements[place]
    held = best.at == at or any(part.at == at for part in parts_of(best))
    return best if held else None


def way_to(body: tuple[ir.Stmt, ...], at: int) -> list[tuple[tuple[ir.Stmt, ...], int]]:
    """The path of blocks from a body to the last statement that begins at or before an ordinal, each with a position in
    it; empty if the body begins later."""
    way: list[tuple[tuple[ir.Stmt, ...], int]] = []
    block = body
    while block and block[0].at <= at:
        number = bisect_right(block, at, key=_ordinal) - 1
        way.append((block, number))
        block = block_at(block[number], at)
    return way


_ordinal = operator.attrgetter("at")


def loops_around(body: tuple[ir.Stmt, ...], at: int) -> list[ir.For | ir.While]:
    """The loops whose bodies contain an ordinal, the outermost first."""
    return [one for one in _around(body, at) if isinstance(one, ir.For | ir.While)]


def withs_around(body: tuple[ir.Stmt, ...], at: int) -> list[ir.With]:
    """The ``with`` statements whose bodies contain an ordinal, the outermost first."""
    return [one for one in _around(body, at) if isinstance(one, ir.With)]


def _around(body: tuple[ir.Stmt, ...], at: int) -> Iterator[ir.Stmt]:
    """The statements whose first block contains an ordinal, within a function."""
    if statement_at(body, at) is None:
        return
    for (block, number), (inner, _) in itertools.pairwise(way_to(body, at)):
        statement = block[number]
        if isinstance(statement, ir.FunctionDef | ir.ClassDef):
            return
        if bodies(statement)[0] is inner:
            yield statement


def parts(body: tuple[ir.Stmt, ...], into_definitions: bool = False) -> Iterator[ir.Expr]:
    """All expressions of a body, and all their parts."""
    for statement in walk_statements(body, into_definitions):
        yield from parts_of(statement)


def parts_of(statement: ir.Stmt) -> Iterator[ir.Expr]:
    """The expressions of a statement itself, not of its blocks, and all their parts."""
    for expr in expressions(statement):
        yield from walk_expression(expr)


def with_lambdas(exprs: Iterable[ir.Expr]) -> Iterator[ir.Expr]:
    """Expressions and all their parts, including the bodies of lambdas."""
    todo = [*exprs]
    while todo:
        for part in walk_expression(todo.pop()):
            yield part
            if isinstance(part, ir.Lambda):
                todo.append(part.body)


def calls(body: tuple[ir.Stmt, ...], into_definitions: bool = False) -> Iterator[ir.Call]:
    """All calls of a body."""
    if not into_definitions:
        return iter(_calls(body))
    return (part for part in parts(body, into_definitions) if isinstance(part, ir.Call))


def call_at(body: tuple[ir.Stmt, ...], at: int) -> ir.Call | None:
    """The call with an ordinal; None if there is none."""
    return _calls_by_place(body).get(at)


def spreads(call: ir.Call) -> bool:
    """Whether a call passes ``*args`` or ``**kwargs``, so that its arguments are not all known."""
    return any(isinstance(arg, ir.Starred) for arg in call.args) or any(word.name is None for word in call.keywords)


def calls_named(body: tuple[ir.Stmt, ...], names: AbstractSet[str]) -> list[ir.Call]:
    """The calls of a body whose callee's last component is one of these names."""
    by_name = _calls_by_name(body)
    return [call for name in names if name in by_name for call in by_name[name]]


@kept
def _calls_by_name(body: tuple[ir.Stmt, ...]) -> dict[str, list[ir.Call]]:
    found: dict[str, list[ir.Call]] = {}
    for call in calls(body):
        found.setdefault(dotted(call.func).rsplit(".", 1)[-1], []).append(call)
    return found


@kept
def assignments(body: tuple[ir.Stmt, ...]) -> dict[str, list[ir.Assign]]:
    """The assignments of a value to a single name, by name, including those in nested definitions."""
    found: dict[str, list[ir.Assign]] = {}
    for statement in (one for one in walk_statements(body) if isinstance(one, ir.Assign)):
        for name in {target.id for target in statement.targets if isinstance(target, ir.Name)}:
            found.setdefault(name, []).append(statement)
    return found


@kept
def _calls_by_place(body: tuple[ir.Stmt, ...]) -> dict[int, ir.Call]:
    return {call.at: call for call in reversed(_calls(body))}


@kept
def _calls(body: tuple[ir.Stmt, ...]) -> tuple[ir.Call, ...]:
    return tuple([part for part in parts(body) if type(part) is ir.Call])


_BACKWARD = frozenset({"backward", "manual_backward"})


@kept
def calls_backward(body: tuple[ir.Stmt, ...]) -> bool:
    """Whether a body, or a function that is defined in it, calls a method ``backward``."""
    inside = with_lambdas(parts(body, into_definitions=True))
    return any(isinstance(part, ir.Call) and last_name(part.func) in _BACKWARD for part in inside)


def leaves(body: tuple[ir.Stmt, ...]) -> bool:
    """Whether a block ends with a jump, a return or a raise."""
    last = body[-1] if body else None
    return isinstance(last, ir.Return | ir.Raise) or (isinstance(last, ir.Jump) and last.kind != "pass")


def is_name(expr: ir.Expr | None, name: str) -> TypeGuard[ir.Name]:
    """Whether an expression is the variable of this name."""
    return isinstance(expr, ir.Name) and expr.id == name


def is_member(expr: ir.Expr) -> TypeGuard[ir.Subscript]:
    """Whether an expression is a subscript with a constant string: ``state["exp_avg"]``."""
    return isinstance(expr, ir.Subscript) and isinstance(expr.index, ir.Const) and expr.index.kind == "str"


def is_true(expr: ir.Expr) -> bool:
    """Whether the expression is the constant True."""
    return isinstance(expr, ir.Const) and expr.value is True


def is_false(expr: ir.Expr) -> bool:
    """Whether the expression is the constant False."""
    return isinstance(expr, ir.Const) and expr.value is False


def is_none(expr: ir.Expr | None) -> bool:
    """Whether the expression is the constant None."""
    return isinstance(expr, ir.Const) and expr.kind == "None"
