"""Resets that come after a literal number of iterations."""

from __future__ import annotations

from memlint.flow.frame import Frame
from memlint.flow.loops import MAX_PERIOD
from memlint.flow.syntax import walk_expression
from memlint.ir import nodes as ir

#: a reset after a literal number of iterations that is no growth worth a word
FEW = "few"


def resets_soon(frame: Frame) -> bool:
    """Whether the current point is reached every so many iterations, a literal and small number."""
    return any(_period(test) <= MAX_PERIOD for test in frame.tests)


def _period(test: ir.Expr) -> int:
    """``k`` of ``i % k == c``, else a large number."""
    for part in walk_expression(test):
        if isinstance(part, ir.Binary) and part.op == "%" and isinstance(part.right, ir.Const) and isinstance(part.right.value, int):
            return part.right.value
    return 1 << 30
