"""Places: of an assignment, of the attributes of a class or of a created module, and of the defaults of parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memlint.analysis.domain.state import State
from memlint.analysis.domain.summary.effects import Spot
from memlint.analysis.domain.summary.function_state import FunctionState
from memlint.analysis.domain.values import (
    CALLABLE,
    CONTAINER,
    DATA,
    EMPTY,
    MODULE,
    NONE,
    TENSORS,
    UNKNOWN,
    Path,
    Ref,
    Source,
    Sources,
    V,
    ordered,
)
from memlint.analysis.index.program import Class, Function
from memlint.analysis.syntax.expression_text import text
from memlint.analysis.syntax.syntax import calls, is_member, is_name
from memlint.analysis.transfer.stores.stores import kind_of
from memlint.ir import nodes as ir

if TYPE_CHECKING:
    from memlint.analysis.facts.analyser import Analyser


#: functions and classes that make a container
_MAKERS = frozenset({"list", "dict", "set", "deque", "defaultdict", "OrderedDict", "Counter"})
#: methods that remove members of a container
TAKING = frozenset({"clear", "pop", "popleft", "popitem", "remove"})


def class_places(analyser: Analyser, base: V, name: str) -> Sources:
    """The symbolic places of an attribute of a class or a function, for a value that refers to it; empty for a
    constant that no code of the project writes."""
    if base.syms or base.objs or base.kinds != CALLABLE:
        return EMPTY
    assigned = analyser.facts.attributes.is_assigned
    found: set[Source] = set()
    for ref in base.refs:
        if ref.kind == "class" and (cls := analyser.cls(ref)) is not None:
            place = class_place(analyser, cls, name)
            if place is not None:
                found.add(place)
        elif ref.kind == "func" and ref.self_ is None and "<lambda" not in ref.name and assigned(name):
            found.add(_place(ref.key, ref.name, name))
    return frozenset(found) or EMPTY


def class_place(analyser: Analyser, cls: Class, name: str) -> Path | None:
    """The symbolic place of ``cls.name`` in the first class of the MRO that defines it; None where none does, or for
    a constant."""
    owner = _owner(analyser, cls, name)
    if owner is None:
        return None
    value = analyser.evaluate_constant(owner.module, owner.attributes[name])
    if not value.kinds & CONTAINER and not (value.is_only(DATA | NONE) and analyser.facts.attributes.is_assigned(name)):
        return None
    return _place(*owner.key, name)


def shared_place(analyser: Analyser, cls: Class, name: str) -> Path | None:
    """The symbolic place of ``instance.name`` that is a container of the class, shared by all instances, since no
    method assigns the attribute; None for another attribute. (An annotated attribute may be a field, of which each
    instance has a copy.)"""
    owner = _owner(analyser, cls, name)
    if owner is None or not _makes_container(owner.attributes[name]):
        return None
    if any(item.is_dataclass or name in item.annotations for item in analyser.program.ancestors(cls)[0]):
        return None
    if analyser.facts.attributes.is_assigned(name):
        return None
    return _place(*owner.key, name)


def default_place(function: Function, param: ir.Param) -> Path | None:
    """The symbolic place of an empty container that is a parameter's default: all calls that pass nothing share it.
    None if the function itself takes something out of it: it may be bounded."""
    made = param.default
    if any(_is_taken_from(call, param.name) for call in calls(function.body)):
        return None
    empty = isinstance(made, ir.Call) and not made.args and not made.keywords
    empty = empty or (isinstance(made, ir.Display) and not made.elements)
    empty = empty or (isinstance(made, ir.DictDisplay) and not made.values)
    return _place(*function.key, param.name) if made is not None and empty and _makes_container(made) else None


def _is_taken_from(call: ir.Call, name: str) -> bool:
    """Whether a call removes members of the container in a variable."""
    func = call.func
    return isinstance(func, ir.Attr) and func.name in TAKING and is_name(func.value, name)


def _owner(analyser: Analyser, cls: Class, name: str) -> Class | None:
    """The first class of the MRO that defines an attribute."""
    order, _ = analyser.program.ancestors(cls)
    return next((item for item in order if name in item.attributes), None)


def _place(key: str, qual: str, name: str) -> Path:
    """The place of an attribute of a definition, by its module and qualified name."""
    return Path(f"g:{key}:{qual}", ("." + name,))


def _makes_container(expr: ir.Expr) -> bool:
    if isinstance(expr, ir.Call):
        called = expr.func.id if isinstance(expr.func, ir.Name) else getattr(expr.func, "name", "")
        return called in _MAKERS
    return (isinstance(expr, ir.Display) and expr.kind != "tuple") or isinstance(expr, ir.DictDisplay)


def class_of(base: V) -> V | None:
    """``instance.__class__`` and ``type(instance)``; None where the class is not known."""
    refs = frozenset(Ref("class", ref.key, ref.name) for ref in base.refs if ref.kind == "instance")
    return V(CALLABLE, refs=refs) if refs else None


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


def place_of(fn: FunctionState, state: State, target: ir.Expr) -> Spot | None:
    """The place of a target; None where it is unknown."""
    if is_name(target, "_"):
        return None
    shown = text(target)
    if isinstance(target, ir.Name):
        if target.id in fn.function.locals:
            return Spot(("var", target.id), "local", shown)
        path = _foreign(fn, target.id)
        return Spot(path, kind_of(path), shown)
    if isinstance(target, ir.Attr | ir.Subscript):
        base = fn.interpreter.evaluate(fn, state, target.value)
        if isinstance(target, ir.Subscript) and not base.may_be(CONTAINER) and not is_member(target):
            return None
        step = "." + target.name if isinstance(target, ir.Attr) else _step(fn, state, target)
        for path in sorted(base.syms):
            inner = path.then(step)
            return Spot(inner, kind_of(inner), shown)
        if isinstance(target, ir.Attr):
            for path in ordered(class_places(fn.analyser, base, target.name)):
                return Spot(path, kind_of(path), shown)
        for key in ordered(base.objs):
            return Spot((key, step), "local", shown)
    return None


def picking_name(target: ir.Expr) -> str:
    """The variable that picks the member in ``place[name]``; "" where none does."""
    return target.index.id if isinstance(target, ir.Subscript) and isinstance(target.index, ir.Name) else ""


def _foreign(fn: FunctionState, name: str) -> Path:
    around = fn.function.enclosing
    return Path(f"c:{name}") if around is not None and name in around.locals else Path(f"g:{fn.module.key}:{name}")


def _step(fn: FunctionState, state: State, target: ir.Subscript) -> str:
    index = fn.interpreter.evaluate(fn, state, target.index)
    return f"[{index.const}]" if isinstance(index.const, str) else "[]"
