"""The values of expressions, recorded in another interpretation of their function."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any

from memlint.analysis.domain.state import State
from memlint.analysis.domain.summary.effects import LoopState
from memlint.analysis.domain.summary.function_state import FunctionState
from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.domain.values import V
from memlint.analysis.index.program import Function
from memlint.analysis.transfer import evaluate, interpret

if TYPE_CHECKING:
    from memlint.analysis.facts.analyser import Analyser


class Recording:
    """``values``: by the ordinal of an expression, its value in the last pass. ``before`` and ``after``: the states
    around each statement (None: nothing follows it); ``loops``: the loops around it."""

    def __init__(self) -> None:
        self.values: dict[int, V] = {}
        self.before: dict[int, State] = {}
        self.after: dict[int, State | None] = {}
        self.loops: dict[int, tuple[LoopState, ...]] = {}


def recorded(
    analyser: Analyser, function: Function, statements: Collection[int], expressions: Collection[int]
) -> tuple[Summary, Recording]:
    """Interpret a function once more and record the values of its statements and expressions (by ordinal). The
    interpreter's dispatch tables are wrapped meanwhile."""
    recording = Recording()

    def is_own(summary: Summary) -> bool:
        return summary.function.key == function.key and not summary.flags

    def evaluated(original: Any, summary: Summary, state: State, expr: Any) -> V:
        value: V = original(summary, state, expr)
        if expr.at in expressions and is_own(summary):
            recording.values[expr.at] = value
        return value

    def run(original: Any, fn: FunctionState, state: State, statement: Any) -> State | None:
        if statement.at not in statements or not is_own(fn):
            end: State | None = original(fn, state, statement)
            return end
        recording.before[statement.at] = state.copy()
        recording.loops[statement.at] = tuple(fn.loops)
        end = original(fn, state, statement)
        recording.after[statement.at] = end.copy() if end is not None else None
        return end

    with _instead(evaluate._DISPATCH, evaluated), _instead(interpret._DISPATCH, run):
        fn = analyser.again(function)
    return fn, recording


@contextlib.contextmanager
def _instead(table: dict[type, Any], observe: Any) -> Iterator[None]:
    """Call each function of a table through ``observe``, which gets it as first argument."""
    originals = dict(table)
    for kind, original in originals.items():
        table[kind] = _through(observe, original)
    try:
        yield
    finally:
        table.update(originals)


def _through(observe: Any, original: Any) -> Any:
    return lambda fn, state, node: observe(original, fn, state, node)
