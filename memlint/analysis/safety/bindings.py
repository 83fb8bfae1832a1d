"""What a function binds a variable to, as its text says."""

from __future__ import annotations

from memlint.analysis.index.program import Function
from memlint.analysis.safety import vocabulary as words
from memlint.analysis.syntax.memo import kept_for
from memlint.analysis.syntax.syntax import dotted, expressions, walk_expression, walk_statements
from memlint.ir import nodes as ir


@kept_for
def binders(function: Function, name: str) -> tuple[ir.Expr, ...] | None:
    """What gives a variable its values: what is assigned to it, or what a loop takes them out of; None where
    something else binds it. A parameter of the name is not among them."""
    values: list[ir.Expr] = []
    for statement in walk_statements(function.body, into_definitions=False):
        for expr in expressions(statement):
            values += [
                part.value
                for part in walk_expression(expr)
                if isinstance(part, ir.Walrus) and _names(part.target, name)
            ]
        match statement:
            case ir.Assign():
                found = _assigned(statement, name)
                if found is None:
                    return None
                values += found
            case ir.AnnAssign() if _names(statement.target, name):
                if statement.value is not None:
                    values.append(statement.value)
            case ir.For() if _names(statement.target, name):
                values.append(statement.iter)
            case ir.AugAssign() if _names(statement.target, name):
                values.append(statement.value)
            case ir.Import() | ir.ImportFrom():
                if any((alias.asname or alias.name.partition(".")[0]) == name for alias in statement.names):
                    return None
            case ir.With() if any(item.target is not None and _names(item.target, name) for item in statement.items):
                return None
            case ir.FunctionDef() | ir.ClassDef() if statement.name == name:
                return None
            case ir.Try() if any(handler.name == name for handler in statement.handlers):
                return None
            case ir.Match() if any(name in case.captures for case in statement.cases):
                return None
    return tuple(values)


def _assigned(statement: ir.Assign, name: str) -> list[ir.Expr] | None:
    """What an assignment gives a variable; None where that cannot be told from its text."""
    found: list[ir.Expr] = []
    for target in statement.targets:
        if isinstance(target, ir.Name) and target.id == name:
            found.append(statement.value)
        elif _names(target, name):
            if not isinstance(target, ir.Display) or not isinstance(statement.value, ir.Display):
                return None
            if len(target.elements) != len(statement.value.elements):
                return None
            pairs = list(zip(target.elements, statement.value.elements, strict=True))
            if any(isinstance(one, ir.Starred) for pair in pairs for one in pair):
                return None
            for element, value in pairs:
                if isinstance(element, ir.Name) and element.id == name:
                    found.append(value)
                elif _names(element, name):
                    return None
    return found


@kept_for
def _values_of(function: Function, name: str) -> tuple[ir.Expr, ...] | None:
    """What a function assigns to a variable; None where something else binds it."""
    if any(param.name == name for param in function.params):
        return None
    for statement in walk_statements(function.body, into_definitions=False):
        if isinstance(statement, ir.For) and _names(statement.target, name):
            return None
    updates = {
        statement.value.at
        for statement in walk_statements(function.body, into_definitions=False)
        if isinstance(statement, ir.AugAssign)
    }
    values = binders(function, name)
    return None if values is None else tuple([value for value in values if value.at not in updates])


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
