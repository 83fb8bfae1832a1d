"""Whether a stored value may be a container of tensors."""

from __future__ import annotations

from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.domain.values import CONTAINER
from memlint.analysis.index.program import Function
from memlint.analysis.syntax.syntax import parts_of
from memlint.fix.safety import vocabulary as words
from memlint.fix.safety.bindings import is_container
from memlint.ir import nodes as ir

#: builtins that return a list or an iterator
_LISTS = words.CONTAINERS | {"sorted", "reversed", "zip", "map", "filter", "enumerate", "iter"}


def holds_others(summary: Summary | None, function: Function, statement: ir.Stmt, expr: ir.Expr) -> bool:
    """Whether an expression that a statement of ``function`` stores, or passes to a call that does, may be a list, a
    tuple or the like, which has no `.detach()`. ``summary``: that of the function, None if unknown."""
    if isinstance(expr, ir.Comprehension | ir.Display | ir.DictDisplay):
        return True
    branches = (expr.body, expr.orelse) if isinstance(expr, ir.IfExp) else ()
    if any(holds_others(summary, function, statement, part) for part in branches):
        return True
    func = expr.func if isinstance(expr, ir.Call) else None
    if isinstance(func, ir.Name) and func.id in _LISTS and func.id not in function.locals:
        return True
    if summary is None:
        return is_container(function, expr)
    kinds = summary.notes.kinds.get(expr.at, 0)
    if isinstance(expr, ir.Name) and summary.exit is not None and expr.id in summary.exit.env:
        kinds |= summary.exit.env[expr.id].kinds
    return bool(kinds & CONTAINER) or _is_passed_as_container(summary, statement, expr)


def _is_passed_as_container(summary: Summary, statement: ir.Stmt, expr: ir.Expr) -> bool:
    """Whether the expression is an argument of a call that passes a container to a function of the project."""
    calls = {
        part.at: part
        for part in parts_of(statement)
        if isinstance(part, ir.Call)
        and (any(arg is expr for arg in part.args) or any(word.value is expr for word in part.keywords))
    }
    for record in summary.calls.values():
        call, callee = calls.get(record.at), summary.analyser.function_at(record.callee)
        if call is None or callee is None:
            continue
        names = [word.name for word in call.keywords if word.value is expr]
        params = callee.params[callee.takes_self :]
        names += [param.name for param, arg in zip(params, call.args, strict=False) if arg is expr]
        if any(name in record.args and record.args[name].kinds & CONTAINER for name in names):
            return True
    return False
