"""What a framework calls: hooks of a class's framework bases, or of those of a class that mixes it in, and functions
that a runtime calls for each request."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from memlint import knowledge
from memlint.analysis.index.entry_points import serves
from memlint.analysis.index.program import Class, Function, Program, in_tests

#: the most classes below one that are looked at
MAX_BELOW = 40
_MODULE = "torch.nn.Module"
#: what runs before the other methods of an object
FIRST = ("__init__", "setup", "initialize", "load", "load_context")


def hook_of(program: Program, function: Function) -> knowledge.Hook | None:
    """The framework hook that a function is; None for no hook."""
    return _of_class(program, function) or (knowledge.SERVED if serves(function) else None)


def _of_class(program: Program, function: Function) -> knowledge.Hook | None:
    """The hook that a method is by its class's external bases, by the class's own name in a framework, by the bases of
    a class that has it from a mixin, or as the class is a module by its use."""
    if function.cls is None or function.name not in knowledge.hooked_methods():
        return None
    order, outside = program.ancestors(function.cls)
    found = _of_bases(outside, function.name)
    if found is not None:
        return found
    for cls in order:
        found = knowledge.hook(f"{program.project.dotted(cls.module.key)}.{cls.qual}", function.name)
        if found is not None:
            return found._replace(own=True)
    found = _of_mixin(program, function, function.cls)
    return found or (knowledge.hook(_MODULE, function.name) if program.is_module(function.cls) else None)


def _of_bases(names: Iterable[str], method: str) -> knowledge.Hook | None:
    return next((found for base in sorted(names) if (found := knowledge.hook(base, method)) is not None), None)


def _of_mixin(program: Program, function: Function, mixin: Class) -> knowledge.Hook | None:
    """The hook that a mixin's method is in the classes that combine the mixin with a framework's base. None where a
    class with no class below it has the method without such a base: its callers are the project's own. What tests make
    of the program's mixin does not count."""
    found = None
    for cls in itertools.islice(program.below(mixin), MAX_BELOW):
        if program.method(cls, function.name) is not function:
            continue
        known = _of_bases(program.ancestors(cls)[1], function.name)
        of_tests = in_tests(cls.module.key) and not in_tests(mixin.module.key)
        if known is None and not of_tests and next(program.below(cls), None) is None:
            return None
        found = found or known
    return found
