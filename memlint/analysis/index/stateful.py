"""Whether a run of a module is seen to change the module: what it keeps of a run lies in such attributes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from memlint.analysis.index.program import Class, Function, Program
from memlint.analysis.index.program_memo import memoized_in_program
from memlint.analysis.syntax.bindings import targets
from memlint.analysis.syntax.syntax import bodies, calls, dotted, is_none, walk_expression, walk_statements
from memlint.ir import nodes as ir

#: the most classes and functions that are looked at for one class
MAX_DEFINITIONS = 64


@memoized_in_program
def is_stateful(program: Program, cls: Class) -> bool:
    """Whether a forward of the class, or of a class that it names or that a function that it names makes (the parts
    that its constructor makes), is seen to change an attribute of its object. False does not prove that none does: a
    part that is passed in, and more than `MAX_DEFINITIONS` definitions, are not looked through."""
    seen: set[tuple[str, str]] = {cls.key}
    todo: list[Class | Function] = [cls]
    while todo:
        one = todo.pop()
        if isinstance(one, Class) and any(map(_changes_itself, _run_methods(program, one))):
            return True
        for part in _named_by(program, one):
            if part.key not in seen and len(seen) < MAX_DEFINITIONS:
                seen.add(part.key)
                todo.append(part)
    return False


def _named_by(program: Program, one: Class | Function) -> Iterator[Class | Function]:
    """The ancestors of a class and the classes and functions of the project that its text names; those that a function
    calls."""
    found: Iterator[tuple[str, Any]]
    if isinstance(one, Class):
        yield from program.ancestors(one)[0]
        names = sorted(one.module.index.units[one.unit].names)
        found = (program.find(one.module, name) for name in names)
    else:
        called = (call.func for call in calls(one.body, into_definitions=True))
        found = (program.find_expression(one.module, func, one) for func in called)
    for kind, what in found:
        if kind in ("class", "function") and what is not None:
            yield what


def _run_methods(program: Program, cls: Class) -> Iterator[Function]:
    """The forward of a class, and the methods that it calls on its object."""
    names = ["forward", "__call__"]
    for name in names:
        method = program.method(cls, name)
        if method is not None:
            yield method
            called = (call.func for call in calls(method.body, into_definitions=True))
            objects, _ = _names_of_own(method)
            own = (func.name for func in called if isinstance(func, ir.Attr) and dotted(func.value) in objects)
            names += [one for one in dict.fromkeys(own) if one not in names]


def _changes_itself(method: Function) -> bool:
    """Whether a method assigns an attribute of its object, or a member of one, or calls a method of one or passes its
    object on for the effect."""
    objects, held = _names_of_own(method)

    def is_held(expr: ir.Expr) -> bool:
        root, steps = _root(expr)
        return root in held or (root in objects and steps > 0)

    for statement in _repeated(method.body):
        if any(is_held(one) for one in targets(statement) if not isinstance(one, ir.Name)):
            return True
        if isinstance(statement, ir.AugAssign) and is_held(statement.target):
            return True
        call = statement.value if isinstance(statement, ir.ExprStmt) else None
        if isinstance(call, ir.Call) and (
            (isinstance(call.func, ir.Attr) and is_held(call.func.value))
            or any(isinstance(arg, ir.Name) and arg.id in objects for arg in _arguments_within(call))
        ):
            return True
    return False


def _repeated(body: tuple[ir.Stmt, ...]) -> Iterator[ir.Stmt]:
    """The statements of a body, at any depth, without a block that runs once for an object, because it ends what its
    test asks: ``if self.pad is None: self.pad = make(x)``."""
    for statement in body:
        yield statement
        for block in bodies(statement):
            once = isinstance(statement, ir.If) and block is statement.body and _fills(statement)
            yield from () if once else _repeated(block)


def _fills(statement: ir.If) -> bool:
    test = statement.test
    if not isinstance(test, ir.Compare) or test.ops != ("is",) or not is_none(test.rights[0]):
        return False
    place = dotted(test.left)
    return "." in place and any(dotted(target) == place for one in statement.body for target in targets(one))


def _names_of_own(method: Function) -> tuple[set[str], set[str]]:
    """(the names of a method's own object, the variables that may hold an attribute of it or a part of one)."""
    objects, held = {method.own_name} - {""}, set[str]()
    for statement in walk_statements(method.body) if objects else ():
        if isinstance(statement, ir.Assign):
            root, steps = _root(statement.value, through_calls=False)
            kind = objects if root in objects and not steps else held if root in objects | held else None
            if kind is not None:
                kind.update(target.id for target in statement.targets if isinstance(target, ir.Name))
    return objects, held


def _root(expr: ir.Expr, through_calls: bool = True) -> tuple[str, int]:
    """The variable that an expression is a part of, and by how many steps: ("rows", 2) for ``rows[0].last``; ("", 0)
    for another expression. ``through_calls``: the result of a method counts as a part of its object."""
    steps = 0
    while isinstance(expr, ir.Subscript | ir.Attr) or (through_calls and isinstance(expr, ir.Call)):
        expr = expr.func if isinstance(expr, ir.Call) else expr.value
        steps += 1
    return (expr.id, steps) if isinstance(expr, ir.Name) else ("", 0)


def _arguments_within(call: ir.Call) -> Iterator[ir.Expr]:
    """The arguments of a call, and of the calls in it."""
    for part in walk_expression(call):
        if isinstance(part, ir.Call):
            yield from part.args
