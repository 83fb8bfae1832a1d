"""Copies of a model's state that are made once and restored after a trial: a warm-up, a search for a learning rate."""

from __future__ import annotations

from memlint.sdk.project import Function
from memlint.sdk.syntax import calls, dotted, expressions, ir, walk_expression, walk_statements


def is_backup(function: Function, place: ir.Expr, copied: ir.Expr, model: ir.Expr, around: tuple[ir.Stmt, ...]) -> bool:
    """Whether a variable holds a copy that is made once and is only restored by ``load_state_dict``, after the model
    was used."""
    if not isinstance(place, ir.Name) or place.id not in function.locals or function.node is None:
        return False
    if any(isinstance(one, ir.For | ir.While) for one in around):
        return False
    loads = [call for call in calls(function.body) if _brings_back(call, place.id)]
    if not loads or not _does_nothing_else(function, place.id, loads):
        return False
    last = max(call.at for call in loads)
    return any(copied.at < call.at < last and _uses(call, dotted(model)) for call in calls(function.body))


def _brings_back(call: ir.Call, name: str) -> bool:
    """Whether a call is ``model.load_state_dict(name)``, of any module."""
    loads = isinstance(call.func, ir.Attr) and call.func.name == "load_state_dict"
    return loads and bool(call.args) and isinstance(call.args[0], ir.Name) and call.args[0].id == name


def _does_nothing_else(function: Function, name: str, loads: list[ir.Call]) -> bool:
    """Whether the name is bound once, and read by these calls alone (also in nested functions)."""
    bound = read = 0
    for statement in walk_statements(function.body):
        if isinstance(statement, ir.Delete):
            continue
        for target in statement.targets if isinstance(statement, ir.Assign) else ():
            bound += sum(isinstance(part, ir.Name) and part.id == name for part in walk_expression(target))
        for expr in expressions(statement):
            read += sum(isinstance(part, ir.Name) and part.id == name for part in walk_expression(expr))
    return bound == 1 and read - bound == len(loads)


def _uses(call: ir.Call, model: str) -> bool:
    """Whether a call runs the model, or has it as an argument."""
    if not model or (isinstance(call.func, ir.Attr) and call.func.name in ("state_dict", "load_state_dict")):
        return False
    given = call.passed
    return dotted(call.func) == model or any(dotted(arg) == model for arg in given)
