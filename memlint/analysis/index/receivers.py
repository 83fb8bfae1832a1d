"""Whether a mention ``other.run`` may mean a method of a given class, by what the file's text says of ``other``."""

from __future__ import annotations

import ast
import itertools

from memlint.analysis.index.definitions import Class, Module
from memlint.analysis.index.mentions import Mention, bound_to
from memlint.analysis.index.program import Program

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
    if isinstance(func, ast.Name):
        if len(bound_to(module.text).get(func.id, ())) != 1:
            return None
        kind, what = program.find(module, func.id)
    elif isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name):
        if len(bound_to(module.text).get(func.value.id, ())) != 1:
            return None
        kind, what = program.member(module, *program.find(module, func.value.id), func.attr)
    else:
        return None
    return what if kind == "class" and isinstance(what, Class) else None


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
