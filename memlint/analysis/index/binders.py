"""The expressions that a function assigns to a variable, by its text."""

from __future__ import annotations

from memlint.analysis.index.function import Function
from memlint.analysis.syntax.bindings import names_bound_by
from memlint.analysis.syntax.memo import kept_for
from memlint.analysis.syntax.syntax import expressions, is_name, walk_expression, walk_statements
from memlint.ir import nodes as ir

#: statements that bind names to no expression of their text
_OTHERS = (ir.Import, ir.ImportFrom, ir.With, ir.FunctionDef, ir.ClassDef, ir.Try, ir.Match)


@kept_for
def binders(function: Function, name: str) -> tuple[ir.Expr, ...] | None:
    """The expressions that are assigned to a variable, and those that a loop iterates over to bind it. None if a
    statement of another form binds it. A parameter of that name is not included."""
    values: list[ir.Expr] = []
    for statement in walk_statements(function.body, into_definitions=False):
        for expr in expressions(statement):
            values += [
                part.value for part in walk_expression(expr) if isinstance(part, ir.Walrus) and binds(part.target, name)
            ]
        match statement:
            case ir.Assign():
                found = _assigned(statement, name)
                if found is None:
                    return None
                values += found
            case ir.AnnAssign() | ir.AugAssign() if binds(statement.target, name):
                values += [statement.value] if statement.value is not None else []
            case ir.For() if binds(statement.target, name):
                values.append(statement.iter)
            case _ if isinstance(statement, _OTHERS) and name in names_bound_by(statement):
                return None
    return tuple(values)


def _assigned(statement: ir.Assign, name: str) -> list[ir.Expr] | None:
    """The values that an assignment gives a variable; None if its text does not tell."""
    found: list[ir.Expr] = []
    for target in statement.targets:
        if is_name(target, name):
            found.append(statement.value)
        elif binds(target, name):
            if not isinstance(target, ir.Display) or not isinstance(statement.value, ir.Display):
                return None
            if len(target.elements) != len(statement.value.elements):
                return None
            pairs = list(zip(target.elements, statement.value.elements, strict=True))
            if any(isinstance(one, ir.Starred) for pair in pairs for one in pair):
                return None
            for element, value in pairs:
                if is_name(element, name):
                    found.append(value)
                elif binds(element, name):
                    return None
    return found


def binds(target: ir.Expr, name: str) -> bool:
    """Whether an assignment to the target binds a variable."""
    match target:
        case ir.Name():
            return target.id == name
        case ir.Display():
            return any(binds(element, name) for element in target.elements)
        case ir.Starred():
            return binds(target.value, name)
    return False
