"""What the bases of a class may do by themselves: call its methods, or find the class and make objects of it."""

from __future__ import annotations

import builtins
import sys

from memlint.analysis.index.definitions import Class
from memlint.analysis.index.program import Function, Program
from memlint.ir import nodes as ir

#: classes that call by themselves what has a name of theirs alone, or one of Python's own
_PLAIN_BASES = frozenset(
    {
        "object",
        "?.object",
        "abc.ABC",
        "torch.nn.Module",
        "?.nn.Module",
        "torch.nn.modules.module.Module",
        "torch.utils.data.Dataset",
        "torch.utils.data.dataset.Dataset",
    }
)
#: whose bases do not look for classes below them (a test runner does)
_FIND_NONE = (sys.stdlib_module_names | {"torch"}) - {"unittest"}
#: expressions of bases that say whose they are
_NAMED = (ir.Name, ir.Attr, ir.Subscript)


def knows_bases(program: Program, cls: Class) -> bool:
    """Whether all that may call a method by itself is in sight: no framework's class is above."""
    ancestors, outside = program.ancestors(cls)
    return outside <= _PLAIN_BASES and all(map(_names_bases, ancestors))


def _names_bases(cls: Class) -> bool:
    return all(isinstance(base, _NAMED) for base in cls.node.bases)


def may_be_layer(program: Program, function: Function) -> bool:
    """Whether it is a module's forward, and not the method of that name of a plain class."""
    cls = function.cls
    named = function.name in ("forward", "__call__")
    return named and (cls is None or program.is_module(cls) or not knows_bases(program, cls))


def is_entered(program: Program, cls: Class) -> bool:
    """Whether a base may find its subclasses, and make objects of them: that of a framework (who runs a server or
    a trainer names the file alone), an unresolved one, or one of the project's that enters them somewhere."""
    ancestors, outside = program.ancestors(cls)
    if any(map(_may_find_subclasses, outside)) or not all(map(_names_bases, ancestors)):
        return True
    return any("__init_subclass__" in one.methods or "metaclass" in one.module.text for one in ancestors)


def _may_find_subclasses(base: str) -> bool:
    """Whether who defines a base from elsewhere may look for classes below it: torch and Python do not."""
    first, _, rest = base.partition(".")
    if first == "?":
        return base not in _PLAIN_BASES and not hasattr(builtins, rest)
    return first not in _FIND_NONE
