"""Tensors that an autograd graph has saved: an in-place update makes its backward raise."""

from __future__ import annotations

from collections.abc import Callable

from memlint.sdk.project import Summary
from memlint.sdk.syntax import children, dotted, expressions, ir, walk_expression, walk_statements
from memlint.sdk.values import LoopUpdate, Path

#: operations whose gradient needs none of their operands
_NEEDS_NOTHING = frozenset({"+", "-"})
#: operations that return a view of a tensor, or may do so
_VIEWS = frozenset(
    {
        "contiguous",
        "data",
        "detach",
        "diagonal",
        "expand",
        "expand_as",
        "flatten",
        "float",
        "movedim",
        "narrow",
        "permute",
        "ravel",
        "reshape",
        "select",
        "squeeze",
        "swapaxes",
        "T",
        "mT",
        "t",
        "to",
        "cuda",
        "transpose",
        "type_as",
        "unfold",
        "unsqueeze",
        "view",
        "view_as",
    }
)


def is_saved(summary: Summary, one: LoopUpdate, symbols: Callable[[Path], bool | None]) -> bool:
    """Whether an operation that autograd records has the variable (or a view of it) as an operand, and its graph may
    still exist at the update. ``symbols``: as for `Graphs.attached`."""
    assert isinstance(one.target, ir.Name)
    live = {node.at: key for key, node in summary.graphs.nodes.items() if not node.leaf and key not in one.freed}
    for statement in walk_statements(summary.function.body):
        if statement is one.statement:
            continue
        for expr in expressions(statement):
            parents = {child.at: part for part in walk_expression(expr) for child in children(part)}
            for part in walk_expression(expr):
                if isinstance(part, ir.Name) and part.id == one.target.id:
                    user = _user(part, parents)
                    if user is None or user.at not in live or _needs_nothing(user):
                        continue
                    if summary.graphs.attached(frozenset({live[user.at]}), symbols)[0] != "no":
                        return True
    return False


def _user(part: ir.Expr, parents: dict[int, ir.Expr]) -> ir.Expr | None:
    """The operation of which a variable or a view of it is an operand."""
    while (around := parents.get(part.at)) is not None:
        method = isinstance(around, ir.Attr) and around.name in _VIEWS
        called = isinstance(around, ir.Call) and around.func is part and isinstance(part, ir.Attr)
        taken = isinstance(around, ir.Subscript) and around.value is part
        held = isinstance(around, ir.Display | ir.Starred | ir.IfExp | ir.Walrus)
        if isinstance(around, ir.Attr) and not method:
            call = parents.get(around.at)
            return call if isinstance(call, ir.Call) and call.func is around else None
        if not (method or called or taken or held):
            return around
        part = around
    return None


def _needs_nothing(user: ir.Expr) -> bool:
    if isinstance(user, ir.Call):
        return dotted(user.func).rpartition(".")[2] in ("cat", "stack", "concat")
    return isinstance(user, ir.Binary) and user.op in _NEEDS_NOTHING
