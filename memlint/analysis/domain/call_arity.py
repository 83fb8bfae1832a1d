"""Selects the methods that a call may run by its number of arguments and of unpacked results (``a, b =
net.sample(x)``)."""

from __future__ import annotations

from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.domain.values import Ref, ordered
from memlint.analysis.index.function import Function
from memlint.analysis.reach.refused_calls import misfit
from memlint.analysis.syntax.memo import kept_for
from memlint.analysis.syntax.syntax import spreads, walk_statements
from memlint.ir import nodes as ir

#: layers of torch that give several tensors
GIVE_SEVERAL = frozenset({"LSTM", "GRU", "RNN", "LSTMCell", "MultiheadAttention"})


def fitting(summary: Summary, refs: frozenset[Ref], expr: ir.Call) -> frozenset[Ref]:
    """The functions among ``refs`` that may return as many values as the call's result is unpacked into; all of them if
    none fits."""
    functions = {ref: summary.analyser.function(ref) for ref in refs if ref.kind == "func"}
    if len(functions) < 2:
        return refs
    count = _unpacked(summary.function.body).get(expr.at)
    if count is None:
        return refs
    others = {ref for ref, function in functions.items() if function is not None and not _may_give(function, count)}
    return refs - others if len(others) < len(functions) else refs


def fitting_classes(summary: Summary, refs: frozenset[Ref], expr: ir.Call, method: str) -> list[Ref]:
    """The possible classes of a module, in order, whose method accepts the call's arguments and may return as many
    values as the result is unpacked into; all of them if none fits."""
    program = summary.analyser.program
    methods: dict[Ref, Function] = {}
    for ref in refs:
        function = program.method(program.module(ref.key).cls(ref.name) if ref.kind == "instance" else None, method)
        if function is not None:
            methods[ref] = function
    count = _unpacked(summary.function.body).get(expr.at)
    if count is not None and any(_displays(function, count) for function in methods.values()):
        refs = frozenset(ref for ref in refs if not _gives_one_tensor(ref))
    if len(methods) < 2:
        return list(ordered(refs))
    strange = {ref for ref, function in methods.items() if not _fits(function, expr, count)}
    return list(ordered(refs - strange if len(strange) < len(methods) else refs))


def _gives_one_tensor(ref: Ref) -> bool:
    """Whether a module is a layer of torch whose output is a single tensor."""
    layer = ref.name.rpartition(".")[2]
    indices = any(word == "return_indices" for word, _ in ref.keywords)
    return ref.kind == "extinstance" and ref.name.startswith("torch.nn.") and layer not in GIVE_SEVERAL and not indices


def _displays(function: Function, count: int) -> bool:
    """Whether a function returns a display of that many values."""
    returned = (one.value for one in walk_statements(function.body, False) if isinstance(one, ir.Return))
    return any(isinstance(value, ir.Display) and len(value.elements) == count for value in returned)


def _fits(function: Function, expr: ir.Call, count: int | None) -> bool:
    if count is not None and not _may_give(function, count):
        return False
    spread = spreads(expr)
    return spread or bool(function.decorators) or not misfit(function.params[1:], expr)


@kept_for
def _unpacked(body: tuple[ir.Stmt, ...]) -> dict[int, int]:
    """The number of names that each call's result is unpacked into, by the call's ordinal."""
    return {
        statement.value.at: len(target.elements)
        for statement in walk_statements(body, into_definitions=False)
        if isinstance(statement, ir.Assign) and isinstance(statement.value, ir.Call)
        for target in statement.targets
        if isinstance(target, ir.Display) and not any(isinstance(each, ir.Starred) for each in target.elements)
    }


def _may_give(function: Function, count: int) -> bool:
    """Whether some return of a function may be unpacked into that many names."""
    if function.is_generator or function.decorators or not isinstance(function.node, ir.FunctionDef):
        return True
    values = [one.value for one in walk_statements(function.body, into_definitions=False) if isinstance(one, ir.Return)]
    return not values or any(
        not isinstance(value, ir.Display)
        or len(value.elements) == count
        or any(isinstance(each, ir.Starred) for each in value.elements)
        for value in values
    )
