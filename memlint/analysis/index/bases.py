"""What base classes outside the project may do with a class: call its methods, or find it and create objects of it."""

from __future__ import annotations

import builtins
import itertools
import sys

from memlint.analysis.index.definitions import Class
from memlint.analysis.index.modules_by_use import may_be_modules
from memlint.analysis.index.program import Function, Program
from memlint.ir import nodes as ir
from memlint.knowledge import PLAIN_BASES

#: packages whose base classes do not search for their subclasses (a test runner does)
_FIND_NONE = (sys.stdlib_module_names | {"torch"}) - {"unittest"}
#: forms of a base expression that name the base
_NAMED = (ir.Name, ir.Attr, ir.Subscript)
#: members of a module that say what an object is, if a class that is none has them, too; or that stand for all
_OF_MODULES = frozenset({"eval", "parameters", "state_dict", "__getattr__", "__getattribute__"})
#: the most classes below one that are looked at
_MAX_BELOW = 40


def knows_bases(program: Program, cls: Class) -> bool:
    """Whether every base is known, and none outside the project calls methods of its subclasses. False if any is
    unknown."""
    ancestors, outside = program.ancestors(cls)
    return outside <= PLAIN_BASES and all(map(_names_bases, ancestors))


def _names_bases(cls: Class) -> bool:
    return all(isinstance(base, _NAMED) for base in cls.node.bases)


def may_be_layer(program: Program, function: Function) -> bool:
    """Whether a function may be the forward of a module. A method of that name in a class that is known to be no module
    is not one."""
    cls = function.cls
    named = function.name in ("forward", "__call__")
    return named and (cls is None or program.is_module(cls) or not knows_bases(program, cls))


def may_be_module(program: Program, cls: Class) -> bool:
    """Whether an object that is used as a module may be of a class, or of one below: it derives from a module, or from
    an unknown base, or has methods or attributes of a module, as an agent or a wrapper does. A trainer with a method
    ``predict`` is none."""
    below = list(itertools.islice(program.below(cls), _MAX_BELOW + 1))
    return len(below) > _MAX_BELOW or any(_serves_as_module(program, one) for one in (cls, *below))


def _serves_as_module(program: Program, cls: Class) -> bool:
    ancestors, outside = program.ancestors(cls)
    if program.is_module(cls) or any(map(may_be_modules, outside)) or not all(map(_names_bases, ancestors)):
        return True
    units = [one.module.index.units[one.unit] for one in ancestors]
    return any(
        not _OF_MODULES.isdisjoint(names)
        for one, unit in zip(ancestors, units, strict=True)
        for names in (one.methods, one.attributes, unit.stores)
    )


def is_entered(program: Program, cls: Class) -> bool:
    """Whether a base class may find this class and create objects of it: one of a framework (whose servers and trainers
    are given the file alone), an unresolved one, or one of the project that registers its subclasses."""
    ancestors, outside = program.ancestors(cls)
    if any(map(_may_find_subclasses, outside)) or not all(map(_names_bases, ancestors)):
        return True
    return any("__init_subclass__" in one.methods or "metaclass" in one.module.text for one in ancestors)


def _may_find_subclasses(base: str) -> bool:
    """Whether the package that defines a base may search for its subclasses; torch and Python do not."""
    first, _, rest = base.partition(".")
    if first == "?":
        return base not in PLAIN_BASES and not hasattr(builtins, rest)
    return first not in _FIND_NONE
