"""Calls of ``backward()`` on a value, and the ones that a project's own ``backward`` method makes."""

from __future__ import annotations

from memlint.analysis.domain.graph_lifetime import keeps_graph
from memlint.analysis.domain.state import State
from memlint.analysis.domain.summary.effects import Backward
from memlint.analysis.domain.summary.function_state import FunctionState
from memlint.analysis.domain.values import NONE_VALUE, TENSORS, UNKNOWN, Args, V, Words
from memlint.analysis.transfer.held_values import tensors_within
from memlint.analysis.transfer.library.summands import note_summands
from memlint.ir import nodes as ir


def backward_called(fn: FunctionState, state: State, expr: ir.Call, receiver: V, args: Args, words: Words) -> V:
    """``loss.backward()``, ``accelerator.backward(loss)``, ``self.manual_backward(loss)``"""
    retain = words.get("retain_graph")
    keep = keeps_graph(words)
    if retain is not None and retain.const is True:
        fn.notes.retained.setdefault(expr.at, (expr, frozenset(fn.left)))
    first = next(iter(args), words.get("loss"))
    if first is not None and (first.src or first.objs) and not receiver.kinds & TENSORS:
        if expr.args:
            note_summands(fn, expr.args[0])
        inner = tensors_within(fn, state, first)
        fn.backward(state, inner, expr.at, retain=keep)
        return NONE_VALUE
    if isinstance(expr.func, ir.Attr):
        note_summands(fn, expr.func.value)
    fn.backward(state, receiver, expr.at, retain=keep)
    if receiver.kinds & UNKNOWN and fn.analyser.methods_named("backward", fn.function):
        _backward_inside(fn, state, expr, receiver)
    return NONE_VALUE


def _backward_inside(fn: FunctionState, state: State, expr: ir.Call, receiver: V) -> None:
    """Record the backward of an object's own ``backward`` method, which may run through any tensor among its
    attributes."""
    held = frozenset(
        source
        for path in receiver.syms
        for place, value in state.sym.items()
        if place != path and place.is_in(path)
        for source in (place, *value.src)
    )
    if held:
        fn.backwards.append(Backward(fn.graphs.closure(held), fn.loop_ids, fn.site(expr.at), tuple(fn.tests)))
