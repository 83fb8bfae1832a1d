"""Whether a run of a module is seen to change the module: what it keeps of a run lies in such attributes."""

from __future__ import annotations

from collections.abc import Iterator

from memlint.analysis.index.program import Class, Function, Program
from memlint.analysis.index.program_memo import memoized_in_program
from memlint.analysis.syntax.bindings import targets
from memlint.analysis.syntax.syntax import calls, dotted, walk_statements
from memlint.ir import nodes as ir

#: the most classes that are looked at for one
MAX_CLASSES = 64


@memoized_in_program
def is_stateful(program: Program, cls: Class) -> bool:
    """Whether a forward of the class, or of a class that it names (the parts that its constructor makes), is seen to
    change an attribute of its object. False does not prove that none does: a local name for the attribute, a class that
    is passed in or made elsewhere, and more than `MAX_CLASSES` classes are not looked through."""
    seen, todo = {cls.key}, [cls]
    while todo:
        one = todo.pop()
        if any(map(_changes_itself, _run_methods(program, one))):
            return True
        for part in _named_classes(program, one):
            if part.key not in seen and len(seen) < MAX_CLASSES:
                seen.add(part.key)
                todo.append(part)
    return False


def _named_classes(program: Program, cls: Class) -> Iterator[Class]:
    """The ancestors of a class, and the classes of the project that its text names."""
    yield from program.ancestors(cls)[0]
    index = cls.module.index.units[cls.unit]
    for name in sorted(index.names):
        if name[:1].isupper() or name[:2].strip("_")[:1].isupper():
            kind, what = program.find(cls.module, name)
            if kind == "class" and isinstance(what, Class):
                yield what


def _run_methods(program: Program, cls: Class) -> Iterator[Function]:
    """The forward of a class, and the methods that it calls on its object."""
    names = ["forward", "__call__"]
    for name in names:
        method = program.method(cls, name)
        if method is not None:
            yield method
            called = (dotted(call.func) for call in calls(method.body, into_definitions=True))
            own = (text.removeprefix("self.") for text in called if text.startswith("self."))
            names += [one for one in dict.fromkeys(own) if "." not in one and one not in names]


def _changes_itself(method: Function) -> bool:
    """Whether a method assigns an attribute of its object, or a member of one, or calls a method of one for its
    effect."""
    for statement in walk_statements(method.body):
        if any(_is_own(target) for target in targets(statement)):
            return True
        if isinstance(statement, ir.ExprStmt) and isinstance(statement.value, ir.Call):
            func = statement.value.func
            if isinstance(func, ir.Attr) and _is_own(func.value):
                return True
    return False


def _is_own(expr: ir.Expr) -> bool:
    """Whether an expression is an attribute of ``self``, or a part of one."""
    while isinstance(expr, ir.Subscript | ir.Attr | ir.Call):
        if isinstance(expr, ir.Attr) and isinstance(expr.value, ir.Name):
            return expr.value.id == "self"
        expr = expr.func if isinstance(expr, ir.Call) else expr.value
    return False
