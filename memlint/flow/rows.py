"""How wide the rows of a growing tensor are, as far as the code around it says."""

from __future__ import annotations

import math
from typing import TypeGuard

from memlint.flow.kept import kept
from memlint.flow.syntax import expressions, text, walk_expression, walk_statements
from memlint.ir import nodes as ir
from memlint.patterns import lazy_pattern

#: methods that give the same tensor, elsewhere or without its graph
PASSED = frozenset(
    {
        "cpu",
        "cuda",
        "to",
        "detach",
        "clone",
        "contiguous",
        "float",
        "half",
        "double",
        "long",
        "type",
    }
)
#: what picks a class for each row: the rows are scores of classes
_PICKS = frozenset({"argmax", "max", "topk"})
_SCORES = lazy_pattern(r"logit|log_?prob|(^|_)probs?(_|$)")
#: scores of each pixel or voxel are no few numbers
_DENSE = lazy_pattern(r"image|img|pixel|voxel|frame|mask|seg|map|volume|recon")
_MAKES = frozenset(
    {"empty", "zeros", "ones", "full", "new_empty", "new_zeros", "new_ones", "FloatTensor", "LongTensor"}
)
#: numbers in a row that is not worth a warning: a thousand of them take a quarter of a MB
MAX_WIDTH = 64


def is_same(part: ir.Expr, place: str) -> bool:
    """The place itself, or a selection of its rows by an index tensor."""
    part = unmoved(part)
    if is_member(part) and text(part, 200) == place:
        return True
    if is_selection(part):
        part = part.value
    return isinstance(part, ir.Name | ir.Attr) and text(part, 200) == place


def is_member(part: ir.Expr) -> TypeGuard[ir.Subscript]:
    """``rows["query"]``, ``rows[name]``: a member of a dictionary, where it is no selection of rows."""
    if not isinstance(part, ir.Subscript):
        return False
    return isinstance(part.index, ir.Name) or (isinstance(part.index, ir.Const) and isinstance(part.index.value, str))


def is_selection(part: ir.Expr) -> TypeGuard[ir.Subscript]:
    """``rows[kept]``: new rows in another order, or fewer of them, so that the old ones must be copied anyway."""
    return isinstance(part, ir.Subscript) and isinstance(part.index, ir.Name)


def narrow_rows(body: tuple[ir.Stmt, ...], place: str, parts: list[ir.Expr]) -> bool:
    """Whether what grows in ``place`` by ``parts`` has rows of a few numbers: scores of classes, by their name or
    because a class is picked from each, or a start whose literal shape says so."""
    shown = [place, *(text(unmoved(part), 200) for part in parts)]
    names = [name.rsplit(".", 1)[-1].lower() for name in shown]
    if any(_DENSE.search(name) for name in names):
        return False
    if any(_SCORES.search(name) for name in names):
        return True
    return any(name in _picked(body) for name in shown) or place in _started_narrow(body)


def unmoved(part: ir.Expr) -> ir.Expr:
    """What is copied to another place or type: ``x`` of ``x.cpu()``."""
    while isinstance(part, ir.Call) and isinstance(part.func, ir.Attr) and part.func.name in PASSED:
        part = part.func.value
    return part


@kept
def _picked(body: tuple[ir.Stmt, ...]) -> frozenset[str]:
    """What a class is picked from, row by row: ``outputs.argmax(-1)``, ``torch.max(outputs, 1)``."""
    found: set[str] = set()
    for statement in walk_statements(body):
        for expr in expressions(statement):
            for part in walk_expression(expr):
                if not isinstance(part, ir.Call) or not isinstance(part.func, ir.Attr) or part.func.name not in _PICKS:
                    continue
                receiver = part.func.value
                of_library = isinstance(receiver, ir.Name) and receiver.id == "torch"
                given = [*part.args, *(word.value for word in part.keywords)]
                if of_library and len(given) > 1:
                    found.add(text(unmoved(given[0]), 200))
                elif not of_library and given:
                    found.add(text(unmoved(receiver), 200))
    return frozenset(found)


@kept
def _started_narrow(body: tuple[ir.Stmt, ...]) -> frozenset[str]:
    """Places that begin as a tensor of a literal shape of small rows: ``torch.empty(0, 2)``."""
    found: set[str] = set()
    for statement in walk_statements(body):
        if isinstance(statement, ir.Assign) and _narrow_start(unmoved(statement.value)):
            found.update(text(target, 200) for target in statement.targets)
    return frozenset(found)


def _narrow_start(value: ir.Expr) -> bool:
    if not isinstance(value, ir.Call) or not isinstance(value.func, ir.Attr) or value.func.name not in _MAKES:
        return False
    given: tuple[ir.Expr, ...] = value.args
    if given and isinstance(given[0], ir.Display):
        given = given[0].elements
    sizes = [item.value for item in given if isinstance(item, ir.Const) and isinstance(item.value, int)]
    return len(sizes) == len(given) > 1 and math.prod(size for size in sizes if size) <= MAX_WIDTH


__all__ = ["PASSED", "is_member", "is_same", "is_selection", "narrow_rows", "unmoved"]
