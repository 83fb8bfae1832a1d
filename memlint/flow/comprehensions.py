"""Comprehensions: loops that make a container, whose targets are names of their own."""

from __future__ import annotations

from memlint.flow import evaluate as evaluating
from memlint.flow.frame import Frame
from memlint.flow.heap import element, make
from memlint.flow.loops import describe
from memlint.flow.state import State
from memlint.flow.stores import store_value
from memlint.flow.syntax import text, walk_expression
from memlint.flow.values import NOTHING, V, ordered
from memlint.ir import nodes as ir


def comprehension(frame: Frame, state: State, expr: ir.Comprehension) -> V:
    """What a comprehension makes, of what one round of its loops gives."""
    before = state.heap.get(expr.at)
    result = make(frame, state, expr.at, "list" if expr.kind == "generator" else expr.kind, NOTHING)
    inner = frame.fork(state)
    if before is not None:
        inner.heap[expr.at] = before  # what it made in the round before, which it may read: ``{k: sums[k] + x …}``
    pushed = 0
    for one in expr.fors:
        source = evaluating.evaluate(frame, inner, one.iter)
        shown = f"for {text(one.target, 30)} in {text(one.iter, 40)}"
        loop = describe(frame, inner, expr.at, source, one.iter, one.target, shown)
        loop.counts = loop.counts and expr.kind != "generator" and loop.loop.over in ("loader", "range")
        frame.loops.append(loop)
        pushed += 1
        bind(frame, inner, one.target, element(frame, inner, source, expr.at))
        for test in one.ifs:
            evaluating.evaluate(frame, inner, test)
    if expr.key is not None:
        evaluating.evaluate(frame, inner, expr.key)
    value = evaluating.evaluate(frame, inner, expr.element)
    inner.heap[expr.at] = state.heap[expr.at]
    if frame.loops[-pushed].counts:
        store_value(frame, inner, result, "append", value, expr.at, text(expr.element), "a comprehension")
    for _ in range(pushed):
        frame.loops.pop()
    for key in ordered(result.objs):
        inner.heap[key] = inner.heap[key].with_elem(value)
    state.heap, state.sym = inner.heap, inner.sym
    state.freed_may, state.freed_must, state.pending, state.modes = (
        inner.freed_may,
        inner.freed_must,
        inner.pending,
        inner.modes,
    )
    return result


def bind(frame: Frame, state: State, target: ir.Expr, value: V) -> None:
    """Bind a comprehension's target: a name of its own, whatever the function around it binds."""
    from memlint.flow.assignment import assign

    frame.own_names |= {part.id for part in walk_expression(target) if isinstance(part, ir.Name)}
    assign(frame, state, target, value, None)
