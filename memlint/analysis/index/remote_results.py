"""Which functions run in a process of their own: their callers get a copy of the result, without its graph."""

from __future__ import annotations

from memlint.analysis.index.bases import knows_bases
from memlint.analysis.index.program import Class, Function, Program
from memlint.analysis.syntax.memo import kept_for
from memlint.analysis.syntax.syntax import dotted, expressions, walk_statements, with_lambdas
from memlint.ir import nodes as ir

#: decorators of such functions, and of classes of which all methods are such
_REMOTE = frozenset({"ray.remote"})
#: functions that get an object and call no method of it
_ASKING = frozenset({"hasattr", "isinstance", "setattr", "super"})


@kept_for
def gives_copies(program: Program, function: Function) -> bool:
    """Whether all that call a function are other processes: a remote function, or a method of a remote class whose
    bases are all known and whose code does not call it. Other code of the process may call it once it has the object,
    as may a base class that is not known."""
    if _is_remote(program, function, function.decorators):
        return True
    cls = function.cls
    if cls is None or not _is_remote(program, function, cls.node.decorators):
        return False
    used = _used_of_itself(program, cls)
    return used is not None and function.name not in used


def _is_remote(program: Program, function: Function, decorators: tuple[ir.Expr, ...]) -> bool:
    names = (one.func if isinstance(one, ir.Call) else one for one in decorators)
    return any(program.outside(function.module, name) in _REMOTE for name in names)


@kept_for
def _used_of_itself(program: Program, cls: Class) -> frozenset[str] | None:
    """The attributes and methods that the methods of a class use of their own object. None where that is not known: a
    base is unknown, or a method hands the object on (``Loop(self)``, ``getattr(self, name)``, ``self(x)``)."""
    if not knows_bases(program, cls):
        return None
    found: set[str] = set()
    for one in program.ancestors(cls)[0]:
        for method in (*one.methods.values(), *one.accessors):
            used = _used_by(method) if method.own_name else frozenset()
            if used is None:
                return None
            found |= used
    return frozenset(found)


def _used_by(method: Function) -> frozenset[str] | None:
    used: set[str] = set()
    mentions: list[ir.Name] = []
    harmless: set[int] = set()
    statements = walk_statements(method.body, into_definitions=True)
    for part in with_lambdas(expr for statement in statements for expr in expressions(statement)):
        if isinstance(part, ir.Name) and part.id == method.own_name:
            mentions.append(part)
        elif isinstance(part, ir.Attr) and isinstance(part.value, ir.Name) and part.value.id == method.own_name:
            used.add(part.name)
            harmless.add(id(part.value))
        elif isinstance(part, ir.Call) and dotted(part.func) in _ASKING:
            harmless.update(map(id, part.args))
    return frozenset(used) if all(id(part) in harmless for part in mentions) else None
