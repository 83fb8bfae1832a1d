"""Calls of a few functions outside the project, as they were met: under which tests, in which loop."""

from __future__ import annotations

from dataclasses import dataclass

from memlint.flow.frame import Frame, LoopFrame
from memlint.flow.values import V
from memlint.ir import nodes as ir

#: the functions that rooms ask about, by qualified name
NOTED = frozenset(
    {
        "copy.deepcopy",
        "torch.load",
        "torch.cuda.empty_cache",
        "torch.cuda.memory.empty_cache",
        "torch.mps.empty_cache",
        "torch.xpu.empty_cache",
        "torch.npu.empty_cache",
        "torch.accelerator.empty_cache",
        "torch.accelerator.memory.empty_cache",
    }
)


@dataclass(slots=True)
class OutsideCall:
    """``name``: qualified. ``loop``: the innermost loop around it whose rounds are iterations; ``tests``: those of the
    ifs around it in the function; ``args``/``words``: what it is given."""

    name: str
    expr: ir.Call
    loop: LoopFrame | None
    tests: tuple[ir.Expr, ...]
    args: list[V]
    words: dict[str, V]


def noted(frame: Frame, name: str, args: list[V], words: dict[str, V], expr: ir.Call) -> None:
    """A function outside the project is called."""
    if name in NOTED:
        frame.notes.outside[expr.at] = OutsideCall(name, expr, frame.innermost(()), tuple(frame.tests), args, words)
