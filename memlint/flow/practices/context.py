"""Tensors that an autograd function keeps as attributes of its context instead of by ``save_for_backward``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from memlint.flow.frame import Frame
from memlint.flow.practice_events import ContextAttribute
from memlint.flow.practices.context_names import FORWARD, SETUP, Body, Kept
from memlint.flow.program import Class, Function
from memlint.flow.syntax import dotted, expressions, parts, text, walk_expression, walk_statements
from memlint.flow.values import SCALAR, TENSORS, Path, V, join
from memlint.ir import nodes as ir

if TYPE_CHECKING:
    from memlint.flow.analyser import Analyser

_FUNCTIONS = re.compile(r"torch\.autograd\.(function\.)?(Function|InplaceFunction)")
#: what the context itself reads
_OWN = frozenset(
    {"to_save", "saved_tensors", "saved_variables", "dirty_tensors", "non_differentiable", "needs_input_grad"}
)


def noted(frame: Frame, target: ir.Attr, value: V, statement: ir.Assign | ir.AnnAssign | None) -> None:
    """An attribute is assigned."""
    function = frame.function
    if function.name not in (FORWARD, SETUP) or function.cls is None or not function.params:
        return
    if not isinstance(target.value, ir.Name) or target.value.id != function.params[0].name:
        return
    known = frame.notes.on_context.get(target.at)
    expr, names = _source(target, statement)
    frame.notes.on_context[target.at] = Kept(target, expr, names, join(known.given, value) if known else value)


def _source(target: ir.Attr, statement: ir.Assign | ir.AnnAssign | None) -> tuple[ir.Expr | None, frozenset[str]]:
    """The expression that the target is given, and the names that the same statement gives it to."""
    if statement is None or statement.value is None:
        return None, frozenset()
    targets = statement.targets if isinstance(statement, ir.Assign) else (statement.target,)
    if target in targets:
        return statement.value, frozenset(item.id for item in targets if isinstance(item, ir.Name))
    for item in targets:
        if isinstance(item, ir.Display) and isinstance(statement.value, ir.Display) and target in item.elements:
            parts = (*item.elements, *statement.value.elements)
            if len(item.elements) * 2 == len(parts) and not any(isinstance(part, ir.Starred) for part in parts):
                return statement.value.elements[item.elements.index(target)], frozenset()
    return None, frozenset()


def events(analyser: Analyser, frame: Frame) -> Iterator[ContextAttribute]:
    """The tensors that one function keeps on its context."""
    function = frame.function
    if not frame.notes.on_context or function.cls is None or "staticmethod" not in function.decorator_names:
        return
    backward = _backward(analyser, function.cls)
    if backward is None or _switches_on(function):
        return
    dropped = _written(analyser, backward)
    if dropped is None:
        return
    body = Body(analyser, function)
    own = _deleted(function)
    for at, kept in sorted(frame.notes.on_context.items()):
        name = kept.target.name
        if name in _OWN or name in dropped or name in own:
            continue
        what = body.what(kept)
        if what is None or (what in ("intermediate", "input") and kept.given.size == SCALAR):
            continue
        # (an output holds the context, whatever it was computed by)
        if what != "output" and _records(kept.given):
            continue
        yield ContextAttribute(
            site=frame.site(at),
            function=function.qual,
            certainty="high" if kept.given.is_only(TENSORS) else "medium",
            kept=what,
            place=text(kept.target),
            value=text(kept.value) if kept.value is not None else "",
            small=kept.given.size == SCALAR,
        )


def _backward(analyser: Analyser, cls: Class) -> Function | None:
    """The backward of an autograd function, where all that it inherits from is known."""
    _, outside = analyser.program.ancestors(cls)
    if not outside or not all(_FUNCTIONS.fullmatch(name) for name in outside):
        return None
    return analyser.program.method(cls, "backward")


def _switches_on(function: Function) -> bool:
    """Whether a part of it records a graph of its own, for a backward within backward: what is kept then has to be."""
    return not function.names.isdisjoint(("enable_grad", "set_grad_enabled")) and any(
        isinstance(part, ir.Attr | ir.Name) and dotted(part).endswith(("enable_grad", "set_grad_enabled"))
        for part in parts(function.body, into_definitions=True)
    )


def _records(value: V) -> bool:
    """Whether a graph was recorded for it here."""
    return any(not isinstance(source, Path) for source in value.src)


def _written(analyser: Analyser, backward: Function, depth: int = 0) -> frozenset[str] | None:
    """The attributes of the context that backward deletes or sets; None where code that cannot be followed may."""
    if not backward.params or depth > 2:
        return None
    ctx = backward.params[0].name
    found: set[str] = set()
    for statement in walk_statements(backward.body):
        for expr in expressions(statement):
            for part in walk_expression(expr):
                if isinstance(part, ir.Call):
                    inner = _handed(analyser, backward, part, ctx, depth)
                    if inner is None:
                        return None
                    found |= inner
                if isinstance(part, ir.Attr) and part.name == "__dict__" and dotted(part.value) == ctx:
                    return None
        found |= _set_by(statement, ctx)
    return frozenset(found)


def _handed(analyser: Analyser, function: Function, call: ir.Call, ctx: str, depth: int) -> frozenset[str] | None:
    """What a callee does with the attributes of a context that it is handed."""
    given = (*call.args, *(word.value for word in call.keywords))
    if not any(dotted(item.value if isinstance(item, ir.Starred) else item) == ctx for item in given):
        return frozenset()
    if isinstance(call.func, ir.Name) and call.func.id in ("hasattr", "getattr", "print", "isinstance", "id"):
        return frozenset()
    kind, what = analyser.program.find_expression(function.module, call.func, function)
    if kind == "function" and what is not None and call.args and dotted(call.args[0]) == ctx:
        return _written(analyser, what, depth + 1)
    return None


def _set_by(statement: ir.Stmt, ctx: str) -> set[str]:
    """The attributes of the context that a statement sets, deletes, or empties in place."""
    targets: tuple[ir.Expr, ...] = ()
    if isinstance(statement, ir.Assign | ir.Delete):
        targets = statement.targets
    elif isinstance(statement, ir.AnnAssign | ir.AugAssign):
        targets = (statement.target,)
    elif isinstance(statement, ir.ExprStmt) and isinstance(statement.value, ir.Call):
        func = statement.value.func  # ctx.x.resize_(0), ctx.x.untyped_storage().resize_(0), ctx.x.clear()
        targets = (func,) if isinstance(func, ir.Attr) and func.name in ("resize_", "clear", "set_", "pop") else ()
    found = set()
    for target in targets:
        for part in walk_expression(target):
            if isinstance(part, ir.Attr) and dotted(part.value) == ctx:
                found.add(part.name)
    return found


def _deleted(function: Function) -> frozenset[str]:
    """The attributes that the function itself takes away again."""
    ctx = function.params[0].name
    found: set[str] = set()
    for statement in walk_statements(function.body, into_definitions=False):
        if isinstance(statement, ir.Delete):
            found |= _set_by(statement, ctx)
    return frozenset(found)
