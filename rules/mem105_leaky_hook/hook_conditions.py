"""Conditions under which a hook stores or is added, beyond the tests of the ``if``\\ s around: code that leaves first,
handlers, and decorators that may not run the function."""

from __future__ import annotations

from memlint.sdk.project import Function
from memlint.sdk.syntax import bodies, ir, walk_expression, way_to

#: decorators that run the function in each call
_PLAIN = frozenset({"staticmethod", "classmethod", "no_grad", "inference_mode", "enable_grad", "autocast"})


def is_of_type(test: ir.Expr) -> bool:
    """Whether a test asks for the type of an object: which layers get a hook does not change from call to call."""
    return any(
        isinstance(part, ir.Call) and isinstance(part.func, ir.Name) and part.func.id in ("isinstance", "type")
        for part in walk_expression(test)
    )


def asks_for_gradient(test: ir.Expr) -> bool:
    """``x.requires_grad``: a hook on another tensor raises."""
    return isinstance(test, ir.Attr) and test.name == "requires_grad"


def may_be_skipped(body: tuple[ir.Stmt, ...], at: int) -> bool:
    """Whether code before an ordinal may leave the function or the round (``if self.added: return``), or whether it is
    in a handler."""
    way = way_to(body, at)
    for (block, number), (inner, _) in zip(way, [*way[1:], ((), 0)], strict=True):
        statement = block[number]
        if isinstance(statement, ir.Try) and any(handler.body is inner for handler in statement.handlers):
            return True
        if _leaves(block[:number]):
            return True
    return False


def _leaves(block: tuple[ir.Stmt, ...], *, in_loop: bool = False) -> bool:
    for statement in block:
        if isinstance(statement, ir.Return):
            return True
        if isinstance(statement, ir.Jump) and statement.kind != "pass" and not in_loop:
            return True
        if isinstance(statement, ir.FunctionDef | ir.ClassDef) or (
            isinstance(statement, ir.If) and is_of_type(statement.test)
        ):
            continue
        within = in_loop or isinstance(statement, ir.For | ir.While)
        if any(_leaves(inner, in_loop=within) for inner in bodies(statement)):
            return True
    return False


def may_be_cached(function: Function) -> bool:
    """Whether a decorator may answer a call without the function: ``functools.cache``, or an unknown one."""
    return not function.decorator_names <= _PLAIN or len(function.decorator_names) < len(function.decorators)
