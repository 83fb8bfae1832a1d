"""Whether a mention of a member may mean that of a given class: by what the text says of the object, and uses of it."""

from __future__ import annotations

import ast
import collections
import itertools
from collections.abc import Callable
from typing import Any, TypeGuard

from memlint import knowledge
from memlint.analysis.index.bases import knows_bases
from memlint.analysis.index.definitions import Class, Module
from memlint.analysis.index.mentions import Mention, bound_to, root
from memlint.analysis.index.program import Function, Program
from memlint.analysis.syntax.bindings import targets
from memlint.analysis.syntax.memo import kept
from memlint.analysis.syntax.syntax import dotted, last_name, parts, walk_expression, walk_statements
from memlint.ir import nodes as ir

#: the most subclasses that are examined
MAX_BELOW = 40
#: bases without methods of the project
_PLAIN = frozenset({"?.object", "?.nn.Module", "?.Module"})


def is_of_another(program: Program, module: Module, mention: Mention, cls: Class) -> bool:
    """Whether a mention surely does not mean a method of the class."""
    node = mention.node
    if isinstance(node, ast.Name):
        return not mention.in_class  # a plain name means a method only in the class body itself
    receiver = node.value
    if _is_outside(program, module, receiver):
        return True
    of = _class_of(program, module, receiver, mention)
    return of is not None and _are_apart(program, of, cls)


def _is_outside(program: Program, module: Module, receiver: ast.expr) -> bool:
    """Whether the receiver is a module of a library: ``np.load``."""
    if not isinstance(receiver, ast.Name) or len(bound_to(module.text).get(receiver.id, ())) != 1:
        return False
    return any(item.binds == receiver.id and item.name is None for item in module.index.imports) and (
        program.find(module, receiver.id)[0] == "ext"
    )


def _class_of(program: Program, module: Module, receiver: ast.expr, mention: Mention) -> Class | None:
    """The project's class of which a receiver is an instance (or of a subclass); None if the text does not tell."""
    if isinstance(receiver, ast.Call):
        if isinstance(receiver.func, ast.Name) and receiver.func.id == "super" and mention.method is not None:
            return module.cls(mention.top)
        return find_class(program, module, receiver.func)
    if not isinstance(receiver, ast.Name):
        return None
    method = mention.method
    if method is not None and method.args.args[:1] and method.args.args[0].arg == receiver.id:
        decorated = {part.id for each in method.decorator_list for part in ast.walk(each) if isinstance(part, ast.Name)}
        rebound = any(value is not None for value in bound_to(module.text).get(receiver.id, ()))
        return None if "staticmethod" in decorated or rebound else module.cls(mention.top)
    bound = bound_to(module.text).get(receiver.id, [])
    made = bound[0] if len(bound) == 1 else None
    return find_class(program, module, made.func) if isinstance(made, ast.Call) else None


def find_class(program: Program, module: Module, func: ast.expr) -> Class | None:
    """The project's class that an expression refers to in every scope of a file; None if that is not certain."""
    if len(bound_to(module.text).get(root(func), ())) != 1:
        return None
    kind, what = meant_by(program, module, func)
    return what if kind == "class" and isinstance(what, Class) else None


def meant_by(program: Program, module: Module, node: ast.expr) -> tuple[str, Any]:
    """What a name of a file, or an attribute of one, is, as by `Program.find`; unknown for another expression."""
    if isinstance(node, ast.Name):
        return program.find(module, node.id)
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return program.member(module, *program.find(module, node.value.id), node.attr)
    return "none", None


def _are_apart(program: Program, of: Class, cls: Class) -> bool:
    """Whether no object is an instance of both classes, and the first one does not delegate attributes to other
    objects."""
    below = list(itertools.islice(program.below(of), MAX_BELOW + 1))
    if len(below) > MAX_BELOW:
        return False
    for one in (of, *below):
        ancestors, outside = program.ancestors(one)
        if cls in ancestors or any(name.startswith("?.") and name not in _PLAIN for name in outside):
            return False
        if any(
            "__getattr__" in each.methods or "__new__" in each.methods or each.node.decorators for each in ancestors
        ):
            return False
    return True


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
