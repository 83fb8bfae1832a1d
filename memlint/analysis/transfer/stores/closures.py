"""Closures that are passed to calls: ``optimizer.minimize(lambda: loss_of(out, y))`` trains by the graphs that they
read."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING

from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.domain.values import Source
from memlint.analysis.index.program import Function
from memlint.analysis.syntax.bindings import names_read
from memlint.analysis.syntax.memo import kept
from memlint.analysis.syntax.syntax import calls_backward, expressions, parts_of, walk_statements
from memlint.analysis.transfer.held_values import variables_with
from memlint.ir import nodes as ir

if TYPE_CHECKING:
    from memlint.analysis.facts.analyser import Analyser


#: depth of calls in which a backward is searched
MAX_CALLS_DOWN = 1


def trains_by_closure(analyser: Analyser, summary: Summary, marks: AbstractSet[Source]) -> bool:
    """Whether a closure that reads these graphs is passed to a call, and a backward runs in the callee or in this
    function."""
    handed = _handed(summary.function)
    if not handed or summary.exit is None:
        return False
    holders = {*variables_with(summary, summary.exit, marks)}
    here = calls_backward(summary.function.body)
    return any(holders & names and (here or _runs_backward(analyser, summary, call.at)) for call, names in handed)


def _runs_backward(analyser: Analyser, summary: Summary, at: int, depth: int = 0) -> bool:
    """Whether a project function that the call at ``at`` runs calls a backward, directly or through its calls."""
    for record in summary.calls.values():
        function = analyser.function_at(record.callee) if record.at == at or depth else None
        if function is None:
            continue
        if calls_backward(function.body):
            return True
        inner = analyser.summary(function) if depth < MAX_CALLS_DOWN else None
        if inner is not None and _runs_backward(analyser, inner, at, depth + 1):
            return True
    return False


@kept
def _handed(function: Function) -> tuple[tuple[ir.Call, frozenset[str]], ...]:
    """The calls of a function that get one of its closures, each with the names that the closure reads."""
    statements = list(walk_statements(function.body))
    inner = {part.name: frozenset(_read(part)) for part in statements if isinstance(part, ir.FunctionDef)}
    return tuple(
        (part, names)
        for statement in statements
        for part in parts_of(statement)
        if isinstance(part, ir.Call)
        for argument in part.passed
        if (names := _names(argument, inner))
    )


def _names(argument: ir.Expr, inner: dict[str, frozenset[str]]) -> frozenset[str]:
    if isinstance(argument, ir.Lambda):
        return names_read(argument.body)
    return inner.get(argument.id, frozenset()) if isinstance(argument, ir.Name) else frozenset()


def _read(part: ir.FunctionDef) -> Iterator[str]:
    for statement in walk_statements(part.body):
        for expr in expressions(statement):
            yield from names_read(expr)
