"""What a function uses of an object of unknown class: a class that lacks one of these members is not the object's."""

from __future__ import annotations

import collections
import itertools
from collections.abc import Callable
from typing import TypeGuard

from memlint import knowledge
from memlint.analysis.index.bases import knows_bases
from memlint.analysis.index.program import Class, Function, Program
from memlint.analysis.syntax.bindings import targets
from memlint.analysis.syntax.memo import kept
from memlint.analysis.syntax.syntax import dotted, last_name, parts, walk_expression, walk_statements
from memlint.ir import nodes as ir

#: the most classes below one that are looked at
MAX_BELOW = 40
#: functions that ask what an object is, or has
_ASKING = frozenset({"hasattr", "getattr", "isinstance", "issubclass", "type"})
#: methods that answer for attributes that a class lacks
_ANSWERING = frozenset({"__getattr__", "__getattribute__"})
#: exceptions that the use of a missing attribute raises, and their bases
_LACKING = frozenset({"AttributeError", "Exception", "BaseException"})


def may_mean(
    program: Program, function: Function, call: ir.Call, cls: Class | None, is_assigned: Callable[[str], bool]
) -> bool:
    """Whether a call in a function, of a method or member that a class of the project has, may be on an object of that
    class, by what else the function uses of the object. A member is missing if no file of the class, of its bases and
    of the classes below mentions its name. False only where all bases are known, and the function treats the object as
    one of a single class, no class answers for what it lacks, and no code sets such an attribute, by
    ``is_assigned``."""
    owner = dotted(call.func.value) if isinstance(call.func, ir.Attr) else ""
    used = _members(function.body).get(owner, frozenset())
    if cls is None or not used or not knows_bases(program, cls):
        return True
    below = list(itertools.islice(program.below(cls), MAX_BELOW + 1))
    if len(below) > MAX_BELOW or not all(knows_bases(program, one) for one in below):
        return True
    classes = {one.key: one for each in (cls, *below) for one in program.ancestors(each)[0]}.values()
    if any(not _ANSWERING.isdisjoint(one.methods) for one in classes):
        return True
    modules = {one.module.key: one.module for one in classes}.values()
    return all(any(name in module.names for module in modules) or is_assigned(name) for name in used)


@kept
def _members(body: tuple[ir.Stmt, ...]) -> dict[str, frozenset[str]]:
    """The attributes that a body needs of each object that it binds once at most, by the object's name. Those of
    modules and tensors, those that it may do without, and the objects that it asks for their class or
    attributes, are left out."""
    found: dict[str, set[str]] = {}
    asked: set[str] = set()
    tried = {id(part) for one in walk_statements(body) if _does_without(one) for part in parts(one.body)}
    for part in parts(body):
        if isinstance(part, ir.Attr) and id(part) not in tried and (owner := dotted(part.value)):
            found.setdefault(owner, set()).add(part.name)
        elif isinstance(part, ir.Call) and dotted(part.func) in _ASKING and part.args:
            asked.add(dotted(part.args[0]))
    bound = collections.Counter(dotted(target) for one in walk_statements(body) for target in targets(one))
    asked |= {name for name, times in bound.items() if times > 1}
    return {
        owner: frozenset(name for name in names if not _is_common(name))
        for owner, names in found.items()
        if owner not in asked
    }


def _does_without(statement: ir.Stmt) -> TypeGuard[ir.Try]:
    """Whether a statement goes on where an object lacks an attribute."""
    return isinstance(statement, ir.Try) and any(
        handler.type is None or any(last_name(part) in _LACKING for part in walk_expression(handler.type))
        for handler in statement.handlers
    )


def _is_common(name: str) -> bool:
    """Whether modules or tensors have an attribute of that name."""
    return name.startswith(("_", "register_")) or knowledge.is_bookkeeping(name) or knowledge.methods().knows(name)
