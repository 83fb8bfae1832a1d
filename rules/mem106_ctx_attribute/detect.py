"""Tensors that an autograd function stores as attributes of its context instead of by ``save_for_backward``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from memlint.sdk import lazy_pattern
from memlint.sdk.project import Analyser, Class, Function, Summary
from memlint.sdk.syntax import call_at, dotted, ir, parts, parts_of, text, walk_expression, walk_statements
from memlint.sdk.values import FORWARD, OWN, SCALAR, SETUP, TENSORS, Path, V

from .forward_names import Body
from .rule import ContextAttribute

#: how a backward releases an attribute of the context: it deletes the attribute, or empties the tensor
Letting = Literal["dropped", "emptied"]

_FUNCTIONS = lazy_pattern(r"torch\.autograd\.(function\.)?(Function|InplaceFunction)")


def detect(analyser: Analyser, summary: Summary) -> Iterator[ContextAttribute]:
    """The tensors that one function stores on its context."""
    function = summary.function
    if not summary.notes.on_context:
        return
    given = _handed_by(analyser, summary)
    cls = given[0].cls if given is not None else function.cls
    if cls is None:
        return
    backward = _backward(analyser, cls)
    if backward is None or _switches_on(function):
        return
    old = given is None and "staticmethod" not in function.decorator_names
    if old and (function.name != FORWARD or not function.takes_self or not backward.takes_self):
        return
    dropped = _written(analyser, backward)
    if dropped is None:
        return
    body = Body(analyser, function)
    if given is not None:
        body.learn_from_caller(Body(analyser, given[0]), given[1])
    own = _deleted(function)
    for at, kept in sorted(summary.notes.on_context.items()):
        name = kept.target.name
        if name in OWN or name in own or dropped.get(name) == "emptied":
            continue
        what = body.what(kept)
        if what != "output" and (name in dropped or given is not None):
            continue
        if what is None or (what in ("intermediate", "input") and kept.given.size == SCALAR):
            continue
        # an output refers to the context in any case
        if what != "output" and _records(kept.given):
            continue
        yield ContextAttribute(
            site=summary.site(at),
            function=function.qual,
            certainty="high" if kept.given.is_only(TENSORS) else "medium",
            kept=what,
            place=text(kept.target),
            value=text(kept.value) if kept.value is not None else "",
            small=kept.given.size == SCALAR,
            dropped=name in dropped,
            old=old,
        )


def _handed_by(analyser: Analyser, summary: Summary) -> tuple[Function, ir.Call] | None:
    """The forward or setup_context that passes its context to this helper, and the call."""
    if summary.function.name in (FORWARD, SETUP):
        return None
    for caller, record in analyser.facts.calls_of(summary.function):
        one = caller.function
        if one.name not in (FORWARD, SETUP) or one.cls is None or not one.params:
            continue
        call = call_at(one.body, record.at)
        if (
            call is None
            or not call.args
            or dotted(call.args[0]) != one.params[0].name
            or "staticmethod" not in one.decorator_names
        ):
            continue
        if _backward(analyser, one.cls) is not None:
            return one, call
    return None


def _backward(analyser: Analyser, cls: Class) -> Function | None:
    """The backward of an autograd function; None if not all its bases are known."""
    _, outside = analyser.program.ancestors(cls)
    if not outside or not all(_FUNCTIONS.fullmatch(name) for name in outside):
        return None
    return analyser.program.method(cls, "backward")


def _switches_on(function: Function) -> bool:
    """Whether a backward records a graph itself, for higher-order gradients: it needs the stored tensors."""
    return not function.names.isdisjoint(("enable_grad", "set_grad_enabled")) and any(
        isinstance(part, ir.Attr | ir.Name) and dotted(part).endswith(("enable_grad", "set_grad_enabled"))
        for part in parts(function.body, into_definitions=True)
    )


def _records(value: V) -> bool:
    """Whether the value has a graph that was recorded in this function."""
    return any(not isinstance(source, Path) for source in value.src)


def _written(analyser: Analyser, backward: Function, depth: int = 0) -> dict[str, Letting] | None:
    """The attributes of the context that backward releases; None if unknown code may release any."""
    if not backward.params or depth > 2:
        return None
    ctx = backward.params[0].name
    found: dict[str, Letting] = {}
    for statement in walk_statements(backward.body):
        for part in parts_of(statement):
            if isinstance(part, ir.Call):
                inner = _handed(analyser, backward, part, ctx, depth)
                if inner is None:
                    return None
                found |= inner
            if isinstance(part, ir.Attr) and part.name == "__dict__" and dotted(part.value) == ctx:
                return None
        found |= _set_by(statement, ctx)
    return found


def _handed(analyser: Analyser, function: Function, call: ir.Call, ctx: str, depth: int) -> dict[str, Letting] | None:
    """The attributes that a callee releases of a context that is passed to it."""
    given = call.passed
    if not any(dotted(item.value if isinstance(item, ir.Starred) else item) == ctx for item in given):
        return {}
    if isinstance(call.func, ir.Name) and call.func.id in ("hasattr", "getattr", "print", "isinstance", "id"):
        return {}
    helper = _helper(analyser, function, call.func)
    if helper is not None and call.args and dotted(call.args[0]) == ctx:
        return _written(analyser, helper, depth + 1)
    return None


def _helper(analyser: Analyser, function: Function, func: ir.Expr) -> Function | None:
    """A function of the project, or a static method by the name of its class; None for others."""
    find = analyser.program.find_expression
    kind, what = find(function.module, func, function)
    if kind == "function" and isinstance(what, Function):
        return what
    kind, what = find(function.module, func.value, function) if isinstance(func, ir.Attr) else ("none", None)
    if kind != "class" or not isinstance(what, Class) or not isinstance(func, ir.Attr):
        return None
    method = analyser.program.method(what, func.name)
    return method if method is not None and "staticmethod" in method.decorator_names else None


def _set_by(statement: ir.Stmt, ctx: str) -> dict[str, Letting]:
    """The attributes of the context that a statement sets, deletes or empties in place."""
    targets: tuple[ir.Expr, ...] = ()
    how: Letting = "dropped"
    if isinstance(statement, ir.Assign | ir.Delete):
        targets = statement.targets
    elif isinstance(statement, ir.AnnAssign | ir.AugAssign):
        targets = (statement.target,)
    elif isinstance(statement, ir.ExprStmt) and isinstance(statement.value, ir.Call):
        func = statement.value.func  # ctx.x.resize_(0), ctx.x.untyped_storage().resize_(0), ctx.x.clear()
        targets = (func,) if isinstance(func, ir.Attr) and func.name in ("resize_", "clear", "set_", "pop") else ()
        how = "emptied"
    found: dict[str, Letting] = {}
    for target in targets:
        for part in walk_expression(target):
            if isinstance(part, ir.Attr) and dotted(part.value) == ctx:
                found[part.name] = how
    return found


def _deleted(function: Function) -> frozenset[str]:
    """The attributes that the function itself deletes."""
    ctx = function.params[0].name
    found: set[str] = set()
    for statement in walk_statements(function.body, into_definitions=False):
        if isinstance(statement, ir.Delete):
            found |= _set_by(statement, ctx).keys()
    return frozenset(found)
