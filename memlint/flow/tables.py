"""Tables of functions and classes at module scope: ``COMMANDS[name](args)`` may call any of them."""

from __future__ import annotations

import re

from memlint.flow.frame import Frame
from memlint.flow.scope import lookup
from memlint.flow.state import State
from memlint.flow.values import CALLABLE, NOTHING, Ref, V
from memlint.ir import nodes as ir

#: what makes a network of which nothing more is known
ANY_NETWORK = Ref("ext", "", "torchvision.models.resnet18")
#: a table of more is followed no further
_MAX_ENTRIES = 16


def entries(frame: Frame, table: ir.Expr) -> V:
    """The project's functions in a table that nothing else is put into by name, or any of its networks; NOTHING where
    it is no such table."""
    root = table
    while isinstance(root, ir.Attr):
        root = root.value
    if not isinstance(root, ir.Name) or root.id in frame.function.locals:
        return NOTHING
    analyser = frame.analyser
    kind, what = analyser.program.find_expression(frame.module, table, frame.function.enclosing)
    if kind != "value":
        return NOTHING
    module, name = what
    bindings = module.bindings.get(name, ())
    if len(bindings) != 1 or not isinstance(bindings[0], ir.Assign | ir.AnnAssign):
        return NOTHING
    display = bindings[0].value
    values = display.values if isinstance(display, ir.DictDisplay) else ()
    if not 0 < len(values) <= _MAX_ENTRIES:
        return NOTHING
    refs = [ref for value in values for ref in analyser.evaluate_constant(module, value).refs]
    if refs and len(refs) >= len(values) and all(_is_network(frame, ref) for ref in refs):
        return V(CALLABLE, refs=frozenset((ANY_NETWORK,)))
    if not refs or any(ref.kind != "func" for ref in refs):
        return NOTHING
    return V(CALLABLE, refs=frozenset(refs))


def of_package(frame: Frame, state: State, expr: ir.Expr) -> V:
    """``models.__dict__[name]``: one of a library's networks, whichever it is; NOTHING for all else."""
    if not isinstance(expr, ir.Attr) or expr.name != "__dict__" or not isinstance(expr.value, ir.Name):
        return NOTHING
    packages = lookup(frame, state, expr.value.id).refs
    known = bool(packages) and all(ref.kind == "ext" and ref.name == "torchvision.models" for ref in packages)
    return V(CALLABLE, refs=frozenset((ANY_NETWORK,))) if known else NOTHING


#: modules that compute no features: what they are given has its graph already, or none
_NO_NETWORK = re.compile(r"loss|criterion|metric|score|transform|augment|norm|act|pool")


def _is_network(frame: Frame, ref: Ref) -> bool:
    """Whether a callable is a class of networks of the project."""
    cls = frame.analyser.cls(ref) if ref.kind == "class" else None
    if cls is None or not frame.analyser.program.is_module(cls) or _NO_NETWORK.search(cls.node.name.lower()):
        return False
    return frame.analyser.program.method(cls, "forward") is not None
