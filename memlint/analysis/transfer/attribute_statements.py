"""Statements that assign attributes, by name, and the values that they assign."""

from __future__ import annotations

from collections.abc import Iterable

from memlint.analysis.index.program import Class, Function
from memlint.analysis.syntax.bindings import targets, unpacked_targets
from memlint.analysis.syntax.memo import kept
from memlint.analysis.syntax.syntax import calls, dotted, is_true, last_name, walk_expression, walk_statements
from memlint.ir import nodes as ir
from memlint.patterns import lazy_pattern

#: names of methods that create the parts of an object
MAKES = lazy_pattern(
    r"_*(init|setup|set_up|build|make|create|configure|define|construct|load_(model|net)|prepare_(model|net))(_|$|ialize)"
)


def note_parameters(statement: ir.Stmt, made: set[str], frozen: set[str]) -> None:
    """Add the attributes that a statement makes parameters (``self.weight = nn.Parameter(…)``) or freezes
    (``self.weight.requires_grad = False``)."""
    if isinstance(statement, ir.Assign):
        value = statement.value
        for target in statement.targets:
            if not isinstance(target, ir.Attr):
                continue
            if target.name == "requires_grad" and isinstance(target.value, ir.Attr):
                frozen.add(target.value.name)
            elif isinstance(value, ir.Call) and dotted(value.func).rsplit(".", 1)[-1] == "Parameter":
                flags = [*value.args[1:], *(word.value for word in value.keywords if word.name == "requires_grad")]
                trains = all(map(is_true, flags))
                (made if trains else frozen).add(target.name)
    elif isinstance(statement, ir.ExprStmt) and isinstance(statement.value, ir.Call):
        func = statement.value.func
        if isinstance(func, ir.Attr) and func.name == "requires_grad_" and isinstance(func.value, ir.Attr):
            frozen.add(func.value.name)


def sets_attribute(function: Function, name: str) -> bool:
    """Whether a statement of the function assigns an attribute of that name a value that does not read it."""
    return any(
        isinstance(statement, ir.Assign)
        and name in assigned_attributes(statement)
        and not any(isinstance(part, ir.Attr) and part.name == name for part in walk_expression(statement.value))
        for statement in walk_statements(function.body, into_definitions=False)
    )


def by_constructor(cls: Class | None, name: str) -> bool:
    """Whether a class calls a function of that name in its constructor alone."""
    if cls is None or "__init__" not in cls.methods:
        return False
    within = [method for method in cls.methods.values() if method.name != "__init__"]
    return not any(last_name(call.func) == name for method in within for call in calls(method.body))


def begins_attribute(method: Function, name: str) -> bool:
    """Whether the method assigns ``self.name`` a value that does not read it."""
    return any(
        isinstance(statement, ir.Assign)
        and not any(isinstance(part, ir.Attr) and part.name == name for part in walk_expression(statement.value))
        for statement in attribute_assignments(method.body).get(name, ())
    )


def is_container(value: ir.Expr) -> bool:
    """Whether an expression makes a container: ``[0] * len(names)``, ``{name: 0 for name in names}``."""
    if isinstance(value, ir.Binary) and value.op == "*":
        return isinstance(value.left, ir.Display) or isinstance(value.right, ir.Display)
    return isinstance(value, ir.Comprehension) and value.kind != "generator"


def assigned_value(statement: ir.Assign | ir.AnnAssign, value: ir.Expr, name: str) -> ir.Expr:
    """The part of an assignment's value that goes to ``self.name``."""
    for target in targets(statement):
        if not isinstance(target, ir.Display):
            continue
        for position, part in enumerate(target.elements):
            if isinstance(part, ir.Attr) and part.name == name:
                same = isinstance(value, ir.Display) and len(value.elements) == len(target.elements)
                return value.elements[position] if same and isinstance(value, ir.Display) else ir.Name(value.at, "")
    return value


@kept
def attribute_assignments(body: tuple[ir.Stmt, ...]) -> dict[str, list[ir.Stmt]]:
    """By name, the statements that assign an attribute of a variable, in source order."""
    found: dict[str, list[ir.Stmt]] = {}
    for statement in walk_statements(body):
        for name in dict.fromkeys(assigned_attributes(statement)):
            found.setdefault(name, []).append(statement)
    return found


def annotation_of(methods: Iterable[Function], name: str) -> ir.Expr | None:
    """The first annotation of ``self.name`` in the methods of a class: ``self.model: Net | None = None``."""
    return next(
        (
            statement.annotation
            for method in methods
            for statement in attribute_assignments(method.body).get(name, ())
            if isinstance(statement, ir.AnnAssign) and dotted(statement.target) == f"{method.own_name}.{name}"
        ),
        None,
    )


def assigned_attributes(statement: ir.Stmt) -> list[str]:
    """The attributes of variables that a statement assigns."""
    flat = unpacked_targets(statement)
    if isinstance(statement, ir.For):
        flat = [*statement.target.elements] if isinstance(statement.target, ir.Display) else [statement.target]
    return [target.name for target in flat if isinstance(target, ir.Attr) and isinstance(target.value, ir.Name)]
