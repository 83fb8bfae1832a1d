"""The share of a tracked value in an expression."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memlint.analysis.index.program import Function
from memlint.analysis.syntax.expression_text import text
from memlint.analysis.syntax.syntax import walk_expression
from memlint.fix.safety import vocabulary as words
from memlint.fix.safety.bindings import is_container
from memlint.fix.safety.handing import call
from memlint.fix.safety.vocabulary import CLEAN, COMPUTED, ITSELF
from memlint.ir import nodes as ir

if TYPE_CHECKING:
    from memlint.fix.safety.watch import Watch


def share_of(watch: Watch, function: Function, expr: ir.Expr) -> int:
    match expr:
        case ir.Name():
            return watch.names.get(function.key, {}).get(expr.id, CLEAN)
        case ir.Const():
            return CLEAN
        case ir.Attr():
            return _attr(watch, function, expr)
        case ir.Call():
            if expr.at in watch.results.get(function.key, ()):
                call(watch, function, expr)
                return ITSELF
            return call(watch, function, expr)
        case ir.Subscript():
            share_of(watch, function, expr.index)
            return ITSELF if share_of(watch, function, expr.value) else CLEAN
        case ir.Binary():
            both = max(share_of(watch, function, expr.left), share_of(watch, function, expr.right))
            lists = any(is_container(function, side) for side in (expr.left, expr.right))
            return CLEAN if not both else ITSELF if lists else COMPUTED
        case ir.Unary():
            return CLEAN if not share_of(watch, function, expr.operand) or expr.op == "not" else COMPUTED
        case ir.BoolOp():
            return max(share_of(watch, function, expr.left), share_of(watch, function, expr.right))
        case ir.Compare():
            return _compare(watch, function, expr)
        case ir.IfExp():
            share_of(watch, function, expr.test)
            return max(share_of(watch, function, expr.body), share_of(watch, function, expr.orelse))
        case ir.Comprehension():
            return _comprehension(watch, function, expr)
        case ir.FormattedString():
            return _formatted(watch, function, expr)
        case ir.Lambda():
            if any(share_of(watch, function, part) for part in _names_in(expr.body)):
                watch.doubtful("a lambda uses it, and may need its graph")
            return CLEAN
        case ir.Walrus():
            level = share_of(watch, function, expr.value)
            watch.assign(function, expr.target, level, None)
            return level
        case ir.Yield():
            if expr.value is not None and share_of(watch, function, expr.value):
                watch.doubtful(f"`{text(expr.value, 40)}` is yielded, and the receiver may need its graph")
            return CLEAN
        case ir.Display() | ir.DictDisplay():
            parts = expr.elements if isinstance(expr, ir.Display) else expr.values
            shares = [share_of(watch, function, part) for part in parts]  # all are evaluated for their effects
            return ITSELF if any(shares) else CLEAN
        case ir.Starred() | ir.Await():
            return share_of(watch, function, expr.value)
        case ir.Slice():
            return CLEAN


def _formatted(watch: Watch, function: Function, expr: ir.FormattedString) -> int:
    """A string: that of a number is the same with and without a graph, any other shows the graph."""
    shares = [share_of(watch, function, part) for part in expr.parts]
    numbers = watch.number and all(isinstance(part, ir.Name | ir.Attr | ir.Binary) for part in expr.parts)
    return COMPUTED if any(shares) and not numbers else CLEAN


def _attr(watch: Watch, function: Function, expr: ir.Attr) -> int:
    held = share_of(watch, function, expr.value)
    if expr.name in watch.attributes:
        return ITSELF
    if not held or expr.name in words.PLAIN_ATTRIBUTES:
        return CLEAN
    if expr.name in words.GRAPH_ATTRIBUTES:
        watch.doubtful(f"`{text(expr, 40)}` is read, which differs without a graph")
    return ITSELF


def _compare(watch: Watch, function: Function, expr: ir.Compare) -> int:
    sides = (expr.left, *expr.rights)
    held = [share_of(watch, function, side) for side in sides]
    named = any(op in ("is", "is not") for op in expr.ops) and not any(isinstance(side, ir.Const) for side in sides)
    searched = any(op in ("in", "not in") for op in expr.ops) and (held[0] or text(expr.left) in watch.stored)
    if any(held) and (named or searched):
        watch.doubtful(f"`{text(expr, 40)}` compares identities, and the fix makes a new object")
    return CLEAN


def _comprehension(watch: Watch, function: Function, expr: ir.Comprehension) -> int:
    for one in expr.fors:
        watch.spread(function, one.target, one.iter)
        for test in one.ifs:
            share_of(watch, function, test)
    keyed = share_of(watch, function, expr.key) if expr.key is not None else CLEAN
    return ITSELF if max(share_of(watch, function, expr.element), keyed) else CLEAN


def _names_in(expr: ir.Expr) -> list[ir.Expr]:
    return [part for part in walk_expression(expr) if isinstance(part, ir.Name | ir.Attr)]
