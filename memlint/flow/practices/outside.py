"""Calls of a few functions outside the project, as they were met: under which tests, in which loop."""

from __future__ import annotations

from dataclasses import dataclass

from memlint.flow.frame import Frame, LoopFrame
from memlint.ir import nodes as ir

#: what gives the allocator's free memory back
EMPTIES = frozenset(
    f"torch.{device}.{place}empty_cache"
    for device in ("cuda", "mps", "xpu", "npu", "accelerator")
    for place in ("", "memory.")
)
#: the functions that rooms ask about, by qualified name
NOTED = EMPTIES | {"torch.load", "torch.autograd.grad", "copy.deepcopy"}


@dataclass(slots=True)
class OutsideCall:
    """``name``: qualified. ``loop``: the innermost loop around it whose rounds are iterations; ``tests``: those of the
    ifs around it in the function."""

    name: str
    expr: ir.Call
    loop: LoopFrame | None
    tests: tuple[ir.Expr, ...]


def noted(frame: Frame, name: str, expr: ir.Call) -> None:
    """A function outside the project is called."""
    if name in NOTED:
        frame.notes.outside[expr.at] = OutsideCall(name, expr, frame.innermost(()), tuple(frame.tests))
