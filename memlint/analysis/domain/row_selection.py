"""Whether an operand from which a tensor is built is that tensor itself, or rows of it."""

from __future__ import annotations

from typing import TypeGuard

from memlint.analysis.syntax.expression_text import text
from memlint.analysis.syntax.syntax import under_calls
from memlint.ir import nodes as ir

#: methods that return the same tensor on another device, in another type or without its graph
PASSED = frozenset({
    "cpu", "cuda", "to", "detach", "clone", "contiguous", "float", "half", "double", "long", "type",
})  # fmt: skip


def is_same(part: ir.Expr, place: str) -> bool:
    """Whether an expression is the place itself, or a selection of its rows by an index tensor."""
    return place in places_of(part)


def places_of(part: ir.Expr) -> tuple[str, ...]:
    """The places that an expression is, or selects rows of."""
    part = unmoved(part)
    found = (text(part, 200),) if is_member(part) else ()
    if is_selection(part):
        part = part.value
    return (*found, text(part, 200)) if isinstance(part, ir.Name | ir.Attr) else found


def is_member(part: ir.Expr) -> TypeGuard[ir.Subscript]:
    """Whether an expression may be a member of a dictionary: ``rows["query"]``, ``rows[name]``."""
    if not isinstance(part, ir.Subscript):
        return False
    return isinstance(part.index, ir.Name) or (isinstance(part.index, ir.Const) and isinstance(part.index.value, str))


def is_selection(part: ir.Expr) -> TypeGuard[ir.Subscript]:
    """Whether an expression may select rows (``rows[kept]``): a new tensor, so that the old rows are copied anyway."""
    return isinstance(part, ir.Subscript) and isinstance(part.index, ir.Name)


def unmoved(part: ir.Expr) -> ir.Expr:
    """The expression without copies to another device or type: ``x`` of ``x.cpu()``."""
    return under_calls(part, PASSED)


__all__ = ["PASSED", "is_member", "is_same", "is_selection", "places_of", "unmoved"]
