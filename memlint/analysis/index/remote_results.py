"""Which functions run in a process of their own: their callers get a copy of the result, without its graph."""

from __future__ import annotations

from memlint.analysis.index.program import Class, Function, Program
from memlint.analysis.syntax.memo import kept_for
from memlint.analysis.syntax.syntax import parts
from memlint.ir import nodes as ir

#: decorators of such functions, and of classes of which all methods are such
_REMOTE = frozenset({"ray.remote"})


@kept_for
def gives_copies(program: Program, function: Function) -> bool:
    """Whether all that call a function are other processes: a remote function, or a method of a remote class that no
    method of the class calls on its own object."""
    if _is_remote(program, function, function.decorators):
        return True
    cls = function.cls
    if cls is None or not _is_remote(program, function, cls.node.decorators):
        return False
    return not any(_calls_itself(one, function.name) for one in (cls, *program.ancestors(cls)[0]))


def _is_remote(program: Program, function: Function, decorators: tuple[ir.Expr, ...]) -> bool:
    names = (one.func if isinstance(one, ir.Call) else one for one in decorators)
    return any(program.outside(function.module, name) in _REMOTE for name in names)


def _calls_itself(cls: Class, name: str) -> bool:
    """Whether a method of a class uses ``self.name``."""
    return any(
        isinstance(part, ir.Attr) and part.name == name and isinstance(part.value, ir.Name) and part.value.id == "self"
        for method in cls.methods.values()
        for part in parts(method.body, into_definitions=True)
    )
