"""What a function binds a variable to, as its text says."""

from __future__ import annotations

from memlint.flow.mends import vocabulary as words
from memlint.flow.program import Function
from memlint.flow.syntax import dotted, walk_statements
from memlint.ir import nodes as ir


def _values_of(function: Function, name: str) -> list[ir.Expr] | None:
    """What a function assigns to a variable; None where something else binds it."""
    values: list[ir.Expr] = []
    if any(param.name == name for param in function.params):
        return None
    for statement in walk_statements(function.body, into_definitions=False):
        match statement:
            case ir.Assign():
                if any(isinstance(target, ir.Name) and target.id == name for target in statement.targets):
                    values.append(statement.value)
                elif any(_names(target, name) for target in statement.targets):
                    pairs = [
                        pair
                        for target in statement.targets
                        if isinstance(target, ir.Display)
                        and isinstance(statement.value, ir.Display)
                        and len(target.elements) == len(statement.value.elements)
                        for pair in zip(target.elements, statement.value.elements, strict=True)
                    ]
                    matching = [value for target, value in pairs if isinstance(target, ir.Name) and target.id == name]
                    if not matching:
                        return None
                    values += matching
            case ir.AnnAssign() if isinstance(statement.target, ir.Name) and statement.target.id == name:
                if statement.value is not None:
                    values.append(statement.value)
            case ir.For() if _names(statement.target, name):
                return None
            case ir.With() if any(item.target is not None and _names(item.target, name) for item in statement.items):
                return None
    return values


def _names(target: ir.Expr, name: str) -> bool:
    """Whether an assignment to the target binds a variable."""
    match target:
        case ir.Name():
            return target.id == name
        case ir.Display():
            return any(_names(element, name) for element in target.elements)
        case ir.Starred():
            return _names(target.value, name)
    return False


def is_container(function: Function, expr: ir.Expr) -> bool:
    """Whether a variable holds a list or a dictionary, whatever path is taken."""
    if isinstance(expr, ir.Display | ir.DictDisplay | ir.Comprehension):
        return True
    values = _values_of(function, expr.id) if isinstance(expr, ir.Name) else None
    return bool(values) and all(
        isinstance(value, ir.Display | ir.DictDisplay | ir.Comprehension)
        or (isinstance(value, ir.Call) and dotted(value.func).rsplit(".", 1)[-1] in words.CONTAINERS)
        for value in values or ()
    )


def is_sum(function: Function, target: ir.Expr) -> bool:
    """Whether a variable begins as a number or a new tensor, so that no update of it in place touches another one."""
    values = _values_of(function, target.id) if isinstance(target, ir.Name) else None
    return bool(values) and all(
        isinstance(value, ir.Const | ir.Binary | ir.Unary)
        or (isinstance(value, ir.Call) and dotted(value.func).rsplit(".", 1)[-1] in words.MAKES_NEW)
        for value in values or ()
    )
