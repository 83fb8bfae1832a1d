"""Calls of a few functions outside the project, as they were met: under which tests, in which loop."""

from __future__ import annotations

from dataclasses import dataclass

from memlint.flow.frame import Frame, LoopFrame
from memlint.flow.library import over_loader
from memlint.flow.values import NOTHING, V
from memlint.ir import nodes as ir

#: what gives the allocator's free memory back
EMPTIES = frozenset(
    f"torch.{device}.{place}empty_cache"
    for device in ("cuda", "mps", "xpu", "npu", "accelerator")
    for place in ("", "memory.")
)
#: what keeps all that it has gone through
KEEPS_ALL = frozenset({"itertools.cycle", "itertools.tee"})
#: the functions that rooms ask about, by qualified name, and those that they ask about where a loader is given
NOTED = EMPTIES | KEEPS_ALL | {"torch.load"}
NOTED_OF_LOADERS = frozenset({"builtins.list", "builtins.tuple"})


@dataclass(slots=True)
class OutsideCall:
    """``name``: qualified. ``loop``: the innermost loop around it whose rounds are iterations; ``tests``: those of the
    ifs around it in the function; ``given``: its first argument."""

    name: str
    expr: ir.Call
    loop: LoopFrame | None
    tests: tuple[ir.Expr, ...]
    given: V


def noted(frame: Frame, name: str, expr: ir.Call, args: list[V]) -> None:
    """A function outside the project is called."""
    given = args[0] if args else NOTHING
    if name in NOTED or (name in NOTED_OF_LOADERS and over_loader(given)):
        frame.notes.outside[expr.at] = OutsideCall(name, expr, frame.innermost(()), tuple(frame.tests), given)
