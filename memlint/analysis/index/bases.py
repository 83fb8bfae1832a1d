"""What base classes outside the project may do with a class: call its methods, find it; and results that are copies."""

from __future__ import annotations

import builtins
import itertools
import sys

from memlint.analysis.index.definitions import Class
from memlint.analysis.index.modules_by_use import may_be_modules
from memlint.analysis.index.program import Function, Program
from memlint.analysis.syntax.memo import kept_for
from memlint.analysis.syntax.syntax import dotted, expressions, walk_statements, with_lambdas
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
