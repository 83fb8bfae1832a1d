"""Rounds that a ``continue`` ends early, with the graphs that variables hold there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from memlint.analysis.domain.values import Source, Sources
from memlint.ir import nodes as ir

if TYPE_CHECKING:
    from memlint.analysis.domain.state import State
    from memlint.analysis.domain.summary.effects import LoopState
    from memlint.analysis.domain.summary.function_state import FunctionState


def note_left_round(fn: FunctionState, state: State, statement: ir.Jump, loop: LoopState) -> None:
    """Record the graphs that variables hold at a ``continue``."""
    held = {name: value.src for name, value in state.env.items() if value.src}
    if held:
        test = fn.tests[-1] if fn.tests else None
        fn.notes.left_rounds[statement.at] = LeftRound(loop.id, held, state.freed_may, test)


class LeftRound(NamedTuple):
    """A ``continue``. ``held``: the graphs by variable; ``freed``: those that some path has freed."""

    loop: Source
    held: Mapping[str, Sources]
    freed: Sources
    test: ir.Expr | None
