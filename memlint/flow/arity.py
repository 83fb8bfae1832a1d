"""How many values a call is asked for: ``a, b = net.sample(x)`` tells which of several methods it may mean."""

from __future__ import annotations

from memlint.flow.definitions import Function
from memlint.flow.frame import Frame
from memlint.flow.kept import kept_for
from memlint.flow.syntax import walk_statements
from memlint.flow.values import Ref
from memlint.ir import nodes as ir


def fitting(frame: Frame, refs: frozenset[Ref], expr: ir.Call) -> frozenset[Ref]:
    """Of several functions, those that may give as many values as a call's result is unpacked into."""
    functions = {ref: frame.analyser.function(ref) for ref in refs if ref.kind == "func"}
    if len(functions) < 2:
        return refs
    count = _unpacked(frame.function.body).get(expr.at)
    if count is None:
        return refs
    others = {ref for ref, function in functions.items() if function is not None and not _may_give(function, count)}
    return refs - others if len(others) < len(functions) else refs


@kept_for
def _unpacked(body: tuple[ir.Stmt, ...]) -> dict[int, int]:
    """Into how many names the results of calls are unpacked in a body, by the calls' ordinals."""
    return {
        statement.value.at: len(target.elements)
        for statement in walk_statements(body, into_definitions=False)
        if isinstance(statement, ir.Assign) and isinstance(statement.value, ir.Call)
        for target in statement.targets
        if isinstance(target, ir.Display) and not any(isinstance(each, ir.Starred) for each in target.elements)
    }


def _may_give(function: Function, count: int) -> bool:
    """Whether some return of a function may be unpacked into so many names."""
    if function.is_generator or function.decorators or not isinstance(function.node, ir.FunctionDef):
        return True
    given = [one.value for one in walk_statements(function.body, into_definitions=False) if isinstance(one, ir.Return)]
    return not given or any(
        not isinstance(value, ir.Display)
        or len(value.elements) == count
        or any(isinstance(each, ir.Starred) for each in value.elements)
        for value in given
    )
