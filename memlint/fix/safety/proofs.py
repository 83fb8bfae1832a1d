"""Whether the result of unknown code is surely a tensor: a loss's name is only a hint, and a caller may pass a loss
that returns a number."""

from __future__ import annotations

from collections.abc import Iterator

from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.domain.values import V
from memlint.analysis.index.binders import binders
from memlint.analysis.index.program import Function
from memlint.analysis.syntax.bindings import mentions
from memlint.analysis.syntax.expression_text import text
from memlint.analysis.syntax.syntax import bodies, parts_of, walk_statements
from memlint.ir import nodes as ir

#: methods that Python's numbers lack
_OF_TENSORS = frozenset({"backward", "item", "detach", "cpu", "numpy"})
#: and such attributes
_READ_OF_TENSORS = frozenset({"data", "device", "grad_fn"})


def is_guessed(
    summary: Summary | None, function: Function, statement: ir.Stmt, expr: ir.Expr, value: V, place: str
) -> bool:
    """Whether only the callee's name says that an expression of a statement is a tensor: no use of it, or of the
    ``place`` that it is added to, proves that on every path through the statement."""
    if summary is None:
        return False
    nodes = summary.graphs.nodes
    parts = list(_summed(function, expr))
    named = any((node := nodes.get(source)) is not None and node.guess for source in value.src)
    called = any(
        isinstance(part, ir.Call) and (node := nodes.get(part.at)) is not None and node.guess for part in parts
    )
    if not named and not called:
        return False
    shown = {place, *(text(part) for part in (expr, *parts) if isinstance(part, ir.Name | ir.Attr))}
    return not any(_is_use(part, shown) for part in _run_with(function.body, statement))


def _summed(function: Function, expr: ir.Expr) -> Iterator[ir.Expr]:
    """The operands from which arithmetic alone computes an expression, through the variables of the function."""
    todo, seen = [expr], set[str]()
    while todo:
        part = todo.pop()
        yield part
        match part:
            case ir.Binary():
                todo += [part.left, part.right]
            case ir.Unary():
                todo.append(part.operand)
            case ir.IfExp():
                todo += [part.body, part.orelse]
            case ir.Name(id=name) if name not in seen:
                seen.add(name)
                todo += binders(function, name) or []


def _run_with(body: tuple[ir.Stmt, ...], inner: ir.Stmt) -> Iterator[ir.Expr]:
    """The expressions that are evaluated on every path through a statement: those of the blocks around it."""
    for statement in body:
        yield from parts_of(statement)
        blocks = bodies(statement) if not isinstance(statement, ir.FunctionDef | ir.ClassDef) else ()
        for block in blocks:
            if isinstance(statement, ir.With) or any(one is inner for one in walk_statements(block)):
                yield from _run_with(block, inner)


def _is_use(part: ir.Expr, shown: set[str]) -> bool:
    """Whether a use proves a tensor: ``loss.item()``, ``scaler.scale(loss).backward()``,
    ``accelerator.backward(loss)``, ``loss.data``."""
    if isinstance(part, ir.Attr):
        return part.name in _READ_OF_TENSORS and text(part.value) in shown
    if not isinstance(part, ir.Call) or not isinstance(part.func, ir.Attr) or part.func.name not in _OF_TENSORS:
        return False
    if text(part.func.value) in shown:
        return True
    return part.func.name == "backward" and any(mentions(part, one) for one in shown)
