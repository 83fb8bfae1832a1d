"""The terms of a sum that receives a backward: ``loss = loss_a + 0.1 * loss_b`` trains by both.

The graph of a sum may come from any of its terms. A term that is called a loss is added for its gradient, so it has a
graph.
"""

from __future__ import annotations

from collections.abc import Iterator

from memlint.analysis.domain.graph_lifetime import keeps_graph
from memlint.analysis.domain.state import State
from memlint.analysis.domain.summary.effects import Backward
from memlint.analysis.domain.summary.function_state import FunctionState
from memlint.analysis.domain.values import NONE_VALUE, NOTHING, TENSORS, UNKNOWN, Args, V, Words
from memlint.analysis.syntax.bindings import names_bound_by, targets
from memlint.analysis.syntax.memo import kept
from memlint.analysis.syntax.syntax import calls, dotted, last_name, walk_statements
from memlint.analysis.transfer.heap import each_part
from memlint.analysis.transfer.held_values import tensors_within
from memlint.ir import nodes as ir
from memlint.patterns import lazy_pattern

#: depth of nested sums that are followed
_DEPTH = 4
#: names of factors of a loss
_FACTOR = lazy_pattern(r"weight|scale|coef|lambd|factor|ratio|alpha|beta|gamma|norm|(^|_)w(_|$)|mask|count|num")

#: methods that change a dictionary
_CHANGE = frozenset({"clear", "pop", "popitem", "setdefault", "update"})


def note_summands(fn: FunctionState, state: State, expr: ir.Expr) -> None:
    """Record that the losses among the summands of ``expr``, which receives a backward, have a graph, where this is
    unknown. So have all members of what is summed whole: ``sum(losses.values())``."""
    for value in _terms(fn, state, expr, 0):
        if value.src and fn.graphs.attached(value.src)[0] == "unknown":
            fn.graphs.evidence.add(value.src)


def _summed_whole(expr: ir.Expr) -> str:
    """The name of the dictionary whose values are all summed by a call: ``sum(v for v in losses.values())``; or ""."""
    summed = expr.args[0] if isinstance(expr, ir.Call) and dotted(expr.func) == "sum" and expr.args else None
    if isinstance(summed, ir.Comprehension):
        one = summed.fors[0]
        whole = len(summed.fors) == 1 and not one.ifs and dotted(summed.element) == dotted(one.target) != ""
        summed = one.iter if whole else None
    func = summed.func if isinstance(summed, ir.Call) else None
    return dotted(func.value) if isinstance(func, ir.Attr) and func.name == "values" else ""


@kept
def _unchanged(body: tuple[ir.Stmt, ...]) -> frozenset[str]:
    """The names of what one call gives as a whole and the function changes nowhere: the members that are read before or
    after a sum are those that it adds."""
    given, other = set[str](), set[str]()
    for statement in walk_statements(body, into_definitions=False):
        names = names_bound_by(statement)
        whole = isinstance(statement, ir.Assign) and isinstance(statement.value, ir.Call)
        once = {one.id for one in targets(statement) if isinstance(one, ir.Name)} - given if whole else set[str]()
        given |= once
        other |= names - once
        places = statement.targets if isinstance(statement, ir.Delete) else targets(statement)
        other.update(dotted(one.value) for one in places if isinstance(one, ir.Subscript))
    for call in calls(body):
        if isinstance(call.func, ir.Attr) and call.func.name in _CHANGE:
            other.add(dotted(call.func.value))
    return frozenset(given - other)


def _terms(fn: FunctionState, state: State, expr: ir.Expr, depth: int) -> Iterator[V]:
    """The values of the losses among the summands of an expression."""
    if depth > _DEPTH:
        return
    if isinstance(expr, ir.Binary) and expr.op in ("+", "*", "/"):
        left, right = fn.operands.get(expr.at, (None, None))
        for side, value, other in ((expr.left, left, right), (expr.right, right, left)):
            if expr.op == "/" and side is not expr.left:
                continue
            if expr.op != "*" or not _summed_whole(side) or (other is not None and not other.src):
                yield from _named(fn, state, side, value, depth)
    elif summed := _summed_whole(expr):
        if summed in _unchanged(fn.function.body):
            yield V(UNKNOWN, each_part(fn, state.env.get(summed, NOTHING)))
    elif place := dotted(expr):
        for statement in _sums(fn.function.body).get(place, ()):
            if isinstance(statement, ir.Assign):
                yield from _terms(fn, state, statement.value, depth + 1)
            else:
                _, added = fn.operands.get(statement.at, (None, None))
                yield from _named(fn, state, statement.value, added, depth)


@kept
def _sums(body: tuple[ir.Stmt, ...]) -> dict[str, list[ir.Assign | ir.AugAssign]]:
    """By place, the statements that assign it a binary operation or a sum of members, or add to it."""
    found: dict[str, list[ir.Assign | ir.AugAssign]] = {}
    for statement in walk_statements(body, into_definitions=False):
        if isinstance(statement, ir.Assign):
            if isinstance(statement.value, ir.Binary) or _summed_whole(statement.value):
                for place in dict.fromkeys(dotted(target) for target in statement.targets):
                    found.setdefault(place, []).append(statement)
        elif isinstance(statement, ir.AugAssign) and statement.op == "+":
            found.setdefault(dotted(statement.target), []).append(statement)
    return found


def _named(fn: FunctionState, state: State, side: ir.Expr, value: V | None, depth: int) -> Iterator[V]:
    if isinstance(side, ir.Binary) or _summed_whole(side):
        yield from _terms(fn, state, side, depth + 1)
    elif value is not None and "loss" in (name := last_name(side).lower()) and not _FACTOR.search(name):
        yield value


def backward_called(fn: FunctionState, state: State, expr: ir.Call, receiver: V, args: Args, words: Words) -> V:
    """``loss.backward()``, ``accelerator.backward(loss)``, ``self.manual_backward(loss)``"""
    retain = words.get("retain_graph")
    keep = keeps_graph(words)
    if retain is not None and retain.const is True:
        fn.notes.retained.setdefault(expr.at, (expr, frozenset(fn.left)))
    first = next(iter(args), words.get("loss"))
    if first is not None and (first.src or first.objs) and not receiver.kinds & TENSORS:
        if expr.args:
            note_summands(fn, state, expr.args[0])
        inner = tensors_within(fn, state, first)
        fn.backward(state, inner, expr.at, retain=keep)
        return NONE_VALUE
    if isinstance(expr.func, ir.Attr):
        note_summands(fn, state, expr.func.value)
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
