"""Loops such as ``for loss in losses: loss.backward(retain_graph=True)``, whose last iteration keeps the graph in
vain."""

from __future__ import annotations

from collections.abc import Iterator

from memlint.sdk.project import Analyser, Summary, captured, is_test
from memlint.sdk.syntax import (
    calls,
    dotted,
    ir,
    is_true,
    last_name,
    loops_around,
    names_bound_by,
    text,
    walk_statements,
)
from memlint.sdk.values import excluded, member_and_whole, places_with

from .rule import KeptGraph

#: calls that differentiate
_BACKWARD = frozenset({"backward", "manual_backward", "grad"})


def kept_by_rounds(analyser: Analyser, summary: Summary) -> Iterator[KeptGraph]:
    """The backwards of one function that iterate over the members of a collection, and keep the graph after the last
    one."""
    if not summary.notes.retained or summary.cut_short or is_test(summary.function):
        return
    for at, (expr, _) in sorted(summary.notes.retained.items()):
        given = next((word.value for word in expr.keywords if word.name == "retain_graph"), None)
        loops = loops_around(summary.function.body, at)
        loop = loops[-1] if loops else None
        if given is None or not is_true(given) or not isinstance(loop, ir.For) or not isinstance(expr.func, ir.Attr):
            continue
        held = _collection(loop, expr.func.value)
        if held is None or _differentiates_again(summary, loop, at) or not _is_own(analyser, summary, held):
            continue
        if len(loops) > 1 and not any(held in names_bound_by(one) for one in walk_statements(loops[-2].body)):
            continue  # the next iteration of the outer loop uses the same graphs
        if len(loops) == 1 and _is_freed_next(summary, loop, at):
            continue
        yield KeptGraph(
            site=summary.site(at),
            function=summary.function.qual,
            kind="rounds",
            text=text(expr),
            word=summary.site(given.at),
            alive=(held,),
        )


def _collection(loop: ir.For, receiver: ir.Expr) -> str | None:
    """The name of the collection over whose members a loop iterates, if the receiver is one of them: ``losses`` of
    ``for i, loss in enumerate(losses)``, and of ``losses[i]``. None otherwise."""
    if isinstance(receiver, ir.Subscript):
        counted = isinstance(loop.iter, ir.Call) and dotted(loop.iter.func) == "range"
        index, target = receiver.index, loop.target
        same = isinstance(index, ir.Name) and isinstance(target, ir.Name) and index.id == target.id
        return receiver.value.id if counted and same and isinstance(receiver.value, ir.Name) else None
    target, source = member_and_whole(loop)
    same = isinstance(receiver, ir.Name) and isinstance(target, ir.Name) and receiver.id == target.id
    return source.id if same and isinstance(source, ir.Name) else None


def _differentiates_again(summary: Summary, loop: ir.For, at: int) -> bool:
    """Whether another backward of the function may use the same graphs: one in the loop, or a later one that is not in
    another branch."""
    tests = {one.site.at: one.tests for one in summary.backwards}
    named = {
        call.at
        for call in calls(summary.function.body, into_definitions=True)
        if call.at != at and last_name(call.func) in _BACKWARD
    }
    inside = {call.at for call in calls(loop.body)}
    if named & inside:
        return True
    later = [other for other in named.union(tests) - inside if other > at]
    return any(other not in tests or not excluded(tests[other], tests.get(at, ())) for other in later)


def _is_freed_next(summary: Summary, loop: ir.For, at: int) -> bool:
    """Whether the graphs of a backward are surely freed right after its loop: the function ends there, and its
    variables alone hold them."""
    body = summary.function.body
    last = body[-1]
    behind = body[-1:] if isinstance(last, ir.Return) else ()
    if summary.function.is_generator or any(calls(behind)) or body[: len(body) - len(behind)][-1:] != (loop,):
        return False
    own = [one for one in summary.backwards if one.site == summary.site(at)]
    nodes = {item: summary.graphs.nodes.get(item) for one in own for item in one.reached}
    marks = frozenset(item for item, node in nodes.items() if node is not None and not node.leaf)
    if not marks or summary.exit is None or captured(summary, marks) or places_with(summary, summary.exit, marks):
        return False
    return marks.isdisjoint(summary.notes.returned | (summary.left - summary.notes.logged))


def _is_own(analyser: Analyser, summary: Summary, name: str) -> bool:
    """Whether no other code can differentiate the members: the function creates the collection, or is the method of an
    optimizer."""
    function = summary.function
    if name not in function.locals:
        return False
    if name not in {param.name for param in function.params}:
        return name not in _returned(summary)
    if function.cls is None:
        return False
    outside = analyser.program.ancestors(function.cls)[1]
    return any(base.startswith("torch.optim.") for base in outside)


def _returned(summary: Summary) -> set[str]:
    """The names that are returned unchanged."""
    found: set[str] = set()
    for statement in walk_statements(summary.function.body, into_definitions=False):
        value = statement.value if isinstance(statement, ir.Return) else None
        members = value.elements if isinstance(value, ir.Display) else (value,)
        found |= {one.id for one in members if isinstance(one, ir.Name)}
    return found
