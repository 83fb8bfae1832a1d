"""Attributes of a module that the function itself creates outside of all loops, as places that its methods write to.

The ``__init__`` of such a module is not interpreted, since most of its attributes are layers; so no heap object holds
them. Symbols for the attributes that its methods write suffice to see that they retain something there (``net =
Net()``, then ``net.training_step(batch)`` in a loop).
"""

from __future__ import annotations

from memlint.analysis.domain.state import State
from memlint.analysis.domain.summary.function_state import FunctionState
from memlint.analysis.domain.values import (
    CONTAINER,
    DATA,
    EMPTY,
    MODULE,
    NONE,
    TENSORS,
    UNKNOWN,
    Path,
    Sources,
    V,
    ordered,
)
from memlint.ir import nodes as ir

#: the root of the symbols of such places
MADE = "m:"
#: the most steps from a created module to an attribute of a part of it that are followed
MAX_NESTED = 4


def note_made(fn: FunctionState, expr: ir.Call) -> None:
    """Record that a module of the project is created here."""
    if not fn.loops:
        fn.notes.own_modules.add(expr.at)


def made_place(fn: FunctionState, base: V, name: str) -> Path | None:
    """The place of ``base.name``, if ``base`` is a module that this function created, or a part of one; None for an
    attribute that no method writes after the constructor (settings, layers)."""
    if base.syms or base.objs or not base.kinds & MODULE or len(base.store) != 1 or not fn.notes.own_modules:
        return None
    (item,) = base.store
    steps: tuple[str, ...] = ("." + name,)
    while isinstance(item, tuple) and item[0] == "part":
        _, item, part = item
        steps = (part if part == "[]" else "." + part, *steps)
    if item not in fn.notes.own_modules or len(steps) > MAX_NESTED:
        return None
    classes = [fn.analyser.cls(ref) for ref in ordered(base.refs) if ref.kind == "instance"]
    if not any(cls is not None and fn.analyser.facts.attributes.is_kept_up(cls, name) for cls in classes):
        return None
    return Path(f"{MADE}{fn.module.key}:{fn.function.qual}:{item}", steps)


def made_places(fn: FunctionState, base: V, name: str) -> Sources:
    """The places that a write to ``base.name`` goes to: those of its symbols, or that of a module created here."""
    place = None if base.syms or not base.kinds & MODULE else made_place(fn, base, name)
    return frozenset((place,)) if place is not None else frozenset(path.then("." + name) for path in base.syms)


def read_made(fn: FunctionState, state: State, base: V, name: str, found: V) -> V | None:
    """The value of ``base.name`` at such a place; None for another attribute. ``found``: its value by the class."""
    if base.kinds & MODULE == 0 or not found.kinds or found.kinds & ~(CONTAINER | DATA | NONE | TENSORS | UNKNOWN):
        return None
    place = made_place(fn, base, name)
    if place is None:
        return None
    if place in state.sym:
        return state.sym[place]
    own = frozenset((place,))
    return found.but(src=EMPTY if found.is_only(CONTAINER | NONE) else found.src | own, syms=found.syms | own)
