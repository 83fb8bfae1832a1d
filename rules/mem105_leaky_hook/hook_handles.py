"""What becomes of the handles that could remove hooks."""

from __future__ import annotations

from memlint.sdk.project import Analyser, Function, Summary, functions_of
from memlint.sdk.syntax import calls, ir, parts, walk_statements
from memlint.sdk.values import HookCall

#: names that read attributes by computed names
_REFLECTION = frozenset({"getattr", "vars", "__dict__"})


def dropped(analyser: Analyser, summary: Summary, call: HookCall) -> bool:
    """Whether the handle that removes the hook is discarded, or kept where nothing reads it."""
    for statement in walk_statements(summary.function.body, into_definitions=False):
        if isinstance(statement, ir.ExprStmt) and statement.value is call.expr:
            return True
        if isinstance(statement, ir.Assign) and statement.value is call.expr:
            target = statement.targets[0]
            if len(statement.targets) != 1:
                return False
            if isinstance(target, ir.Attr):
                return _unread(analyser, summary.function, target)
            return (
                isinstance(target, ir.Name)
                and summary.function.node is not None
                and not _read(summary.function, target)
            )
        if isinstance(statement, ir.ExprStmt) and _is_appended(statement.value, call):
            assert isinstance(statement.value, ir.Call) and isinstance(statement.value.func, ir.Attr)
            place = statement.value.func.value
            return isinstance(place, ir.Attr) and _unread(analyser, summary.function, place)
    return False


def _is_appended(expr: ir.Expr, call: HookCall) -> bool:
    """``self.handles.append(layer.register_forward_hook(hook))``"""
    return (
        isinstance(expr, ir.Call)
        and isinstance(expr.func, ir.Attr)
        and expr.func.name == "append"
        and any(arg is call.expr for arg in expr.args)
    )


def _unread(analyser: Analyser, adder: Function, attribute: ir.Attr) -> bool:
    """Whether an attribute of the object whose method adds the hook is read by no code of the project, except to append
    to it."""
    name = attribute.name
    if not isinstance(attribute.value, ir.Name) or attribute.value.id != adder.own_name:
        return False
    if not _REFLECTION.isdisjoint(adder.module.names):
        return False
    for key in analyser.program.words.files(name):
        for function in functions_of(analyser.program.module(key)):
            written = {
                item.at
                for one in walk_statements(function.body, into_definitions=False)
                if isinstance(one, ir.Assign)
                for target in one.targets
                for item in (target.elements if isinstance(target, ir.Display) else (target,))
            }
            filled = {
                other.func.value.at
                for other in calls(function.body)
                if isinstance(other.func, ir.Attr) and other.func.name == "append"
            }
            for part in parts(function.body):
                if isinstance(part, ir.Attr) and part.name == name and part.at not in written | filled:
                    return False
                if isinstance(part, ir.Const) and part.value == name:
                    return False
    return True


def _read(function: Function, target: ir.Name) -> bool:
    """Whether a function, or a nested one, uses a variable anywhere but at this position."""
    return any(
        isinstance(part, ir.Name) and part.id == target.id and part is not target and part.at != target.at
        for part in parts(function.body, into_definitions=True)
    ) or any(isinstance(one, ir.Scope) and target.id in one.names for one in walk_statements(function.body))
