"""Names for memory that torch does not have."""

from __future__ import annotations

from collections.abc import Iterator

from memlint.sdk.project import Analyser, Names, Summary, knowledge, memory, unguarded, used_names
from memlint.sdk.syntax import identifiers, ir, parts_of, text

from .rule import MissingName

_NAMES = frozenset(memory.missing())
#: methods of tensors that return a tensor
_SAME = frozenset({"to", "cuda", "cpu", "clone", "detach", "float", "double", "half", "bfloat16", "contiguous"})


def detect(analyser: Analyser, summary: Summary) -> Iterator[MissingName]:
    """The memory APIs that one function uses and torch does not have."""
    function = summary.function
    for use in used_names(analyser, summary, _NAMES):
        yield MissingName(
            site=summary.site(use.at),
            function=function.qual,
            name=use.name,
            text=use.text,
            advice=memory.missing()[use.name].advice,
        )
    methods = memory.missing_methods().keys()
    if function.names.isdisjoint(methods) or methods.isdisjoint(identifiers(function.body)[1]):
        return
    for statement in unguarded(function.body):
        yield from _called(analyser, summary, statement)


def _called(analyser: Analyser, summary: Summary, statement: ir.Stmt) -> Iterator[MissingName]:
    """The methods that a statement calls on tensors and tensors do not have."""
    for call in parts_of(statement):
        if not isinstance(call, ir.Call) or not isinstance(call.func, ir.Attr) or call.args or call.keywords:
            continue
        advice = memory.missing_methods().get(call.func.name)
        if advice is not None and _is_tensor(analyser, Names(analyser, summary), call.func.value):
            yield MissingName(
                site=summary.site(call.at),
                function=summary.function.qual,
                name=call.func.name,
                text=text(call),
                advice=advice,
                method=True,
            )


def _is_tensor(analyser: Analyser, names: Names, expr: ir.Expr) -> bool:
    """Whether an expression is the result of a function of torch that returns a tensor."""
    function = names.summary.function
    for _ in range(8):
        if isinstance(expr, ir.Name):
            if expr.id not in function.locals and function.around is not None:
                return False
            bound = names.value(expr.id)
            if bound is None or bound[1]:
                return False
            expr = bound[0]
        elif isinstance(expr, ir.Call) and isinstance(expr.func, ir.Attr) and expr.func.name in _SAME:
            expr = expr.func.value
        elif isinstance(expr, ir.Call):
            scope = function if function.node is not None else None
            name = analyser.program.outside(names.module, expr.func, scope)
            row = knowledge.function(name) if name.startswith("torch.") else None
            return row is not None and row.returns == "tensor" and row.allocates
        else:
            return False
    return False
