"""Calls of functions outside the project that rules ask about, with the tests and the loop around each."""

from __future__ import annotations

from dataclasses import dataclass

from memlint.analysis.domain.summary.effects import LoopState
from memlint.analysis.domain.summary.function_state import FunctionState
from memlint.analysis.domain.values import NOTHING, Args, V, Words
from memlint.analysis.transfer.loops import over_loader
from memlint.ir import nodes as ir

#: functions that release the allocator's free memory
EMPTIES = frozenset(
    f"torch.{device}.{place}empty_cache"
    for device in ("cuda", "mps", "xpu", "npu", "accelerator")
    for place in ("", "memory.")
)


@dataclass(slots=True)
class OutsideCall:
    """``name``: qualified. ``loop``: the innermost iteration loop around the call; ``tests``: those of the ifs
    around it in the function; ``given``: its first argument, or its ``dataset``."""

    name: str
    expr: ir.Call
    loop: LoopState | None
    tests: tuple[ir.Expr, ...]
    given: V


@dataclass(slots=True)
class MetricUse:
    """A metric object takes the values of a batch. ``name``: its qualified class; ``held``: the expression of the
    object."""

    name: str
    expr: ir.Call
    held: ir.Expr
    loops: tuple[LoopState, ...]


#: methods of metric objects that add to their state
_ADDS = frozenset({"update", "forward", "__call__"})


def note_metric(fn: FunctionState, name: str, method: str, expr: ir.Call) -> None:
    """Record a call of a metric object's method that adds to its state."""
    held = expr.func
    if method in _ADDS and (method == "__call__" or isinstance(held, ir.Attr)):
        if isinstance(held, ir.Attr) and held.name == method:
            held = held.value
        fn.notes.metrics[expr.at] = MetricUse(name, expr, held, tuple(fn.loops))


def note_call(fn: FunctionState, name: str, expr: ir.Call, args: Args, words: Words) -> None:
    """Record a call of a function outside the project that a rule asks about."""
    first = args[0] if args else words.get("dataset", NOTHING)
    analyser = fn.analyser
    if name in analyser.noted_calls or (name in analyser.noted_of_loaders and over_loader(first)):
        fn.notes.outside[expr.at] = OutsideCall(name, expr, fn.innermost(()), tuple(fn.tests), first)
