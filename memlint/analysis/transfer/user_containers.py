"""Instances of the project's subclasses of dict, list and tuple: their members, beside their attributes."""

from __future__ import annotations

from memlint.analysis.domain.state import Obj, State
from memlint.analysis.domain.summary.function_state import FunctionState
from memlint.analysis.domain.values import (
    CALLABLE,
    CONTAINER,
    EMPTY,
    INSTANCE,
    MODULE,
    NONE_VALUE,
    NOTHING,
    TENSORS,
    TREE,
    UNKNOWN,
    Args,
    Sources,
    V,
    Words,
    join,
    join_all,
    ordered,
)
from memlint.analysis.index.program import Class, Program
from memlint.analysis.syntax.expression_text import text
from memlint.analysis.transfer import containers
from memlint.analysis.transfer.assignment import write_item
from memlint.analysis.transfer.heap import element, elements_of, make, members, read_item
from memlint.analysis.transfer.held_values import tensors_within
from memlint.ir import nodes as ir

#: the kind of container that a base class of this name makes
_KINDS = {
    "list": "list",
    "List": "list",
    "UserList": "list",
    "tuple": "tuple",
    "Tuple": "tuple",
    "set": "set",
    "frozenset": "set",
    "deque": "deque",
    "dict": "dict",
    "Dict": "dict",
    "OrderedDict": "dict",
    "defaultdict": "dict",
    "Counter": "dict",
    "UserDict": "dict",
    "TypedDict": "dict",
}


#: modules of these base classes; "?" is for builtins and star imports. A class of such a name from elsewhere (a space
#: of actions called Dict) is no container
_HOMES = frozenset({"?", "builtins", "collections", "typing", "typing_extensions", "addict"})


def kind_of(program: Program, cls: Class) -> str:
    """The kind of container that the instances of a class are ("dict", "list"); "" for a class that is no container."""
    _, outside = program.ancestors(cls)
    for name in sorted(outside):
        home, _, last = name.rpartition(".")
        kind = _KINDS.get(last)
        if kind is not None and home in _HOMES:
            return kind
    return ""


def kinds_of_object(program: Program, cls: Class) -> int:
    """The kinds of an instance of a class: INSTANCE, with MODULE or CONTAINER where the class is one."""
    if program.is_module(cls):
        return INSTANCE | MODULE
    return INSTANCE | CONTAINER if kind_of(program, cls) else INSTANCE


def is_typed_dict(program: Program, cls: Class) -> bool:
    """Whether an instance of a class is a plain dict."""
    _, outside = program.ancestors(cls)
    return any(name.rsplit(".", 1)[-1] == "TypedDict" for name in outside)


def looks_up_members(program: Program, cls: Class) -> bool:
    """Whether a class looks missing attributes up itself, most often among its members."""
    order, _ = program.ancestors(cls)
    names = ("__getattr__", "__getattribute__")
    return any(name in item.methods or name in item.attributes for item in order for name in names)


def fill_container(fn: FunctionState, state: State, kind: str, box: V, args: Args, words: Words) -> None:
    """Store what the constructor of a dict or a list puts into the object."""
    fields, rest = dict_content(fn, state, args, words) if kind == "dict" else _listed(fn, state, args[:1])
    for key, obj in state.objects(box):
        held = {**obj.fields, **fields}
        state.heap[key] = Obj(obj.kind, join(obj.elem, rest), held, obj.loops, obj.bounded, obj.cls, obj.text)
    for path in ordered(box.syms):
        if kind == "dict":
            for name, value in fields.items():
                state.sym[path.then(f"[{name}]")] = value
        else:
            rest = join_all((rest, *fields.values()))
        if rest.kinds:
            place = path.then("[]")
            state.sym[place] = join(state.sym.get(place, NOTHING), rest)


def dict_content(fn: FunctionState, state: State, args: Args, words: Words) -> tuple[dict[str, V], V]:
    """The members of ``dict(a=x)``, ``dict(other)``, ``dict((name, x) for …)`` by key, and the join of the others."""
    fields: dict[str, V] = {}
    rest = NOTHING
    for word, value in words.items():
        if word.startswith("**"):
            rest = join(rest, elements_of(fn, state, value)) if value.src or value.objs or value.syms else rest
        else:
            fields[word] = value
    for value in args:
        for _, obj in state.objects(value):
            if obj.kind == "dict":
                fields.update(obj.fields)
                rest = join(rest, obj.elem)
            else:
                held = (one for _, one in state.objects(members(obj)))
                rest = join_all((rest, *(one.fields["1"] for one in held if "1" in one.fields)))
        may_be_dict = value.kinds & (TENSORS | UNKNOWN | CONTAINER) and not value.kinds & CALLABLE
        if (value.src or value.syms) and may_be_dict:
            unknown = value.but(objs=EMPTY, kinds=value.kinds & ~CONTAINER or UNKNOWN)
            rest = join(rest, elements_of(fn, state, unknown))
    return fields, rest


def _listed(fn: FunctionState, state: State, args: Args) -> tuple[dict[str, V], V]:
    """The members of ``list(other)`` by position, and the join of the others."""
    for value in args:
        held = [obj for _, obj in state.objects(value)]
        if len(held) == 1 and value.is_only(CONTAINER) and held[0].kind in ("list", "tuple") and not value.syms:
            return {str(place): item for place, item in enumerate(held[0].ordered)}, held[0].elem
        return {}, element(fn, state, value)
    return {}, NOTHING


def fill_blindly(fn: FunctionState, state: State, box: V, args: Args, words: Words, expr: ir.Call) -> None:
    """Give a container whose constructor could not be followed a member with the graphs of all arguments."""
    parents = EMPTY.union(*(tensors_within(fn, state, value).src for value in (*args, *words.values())))
    if not parents:
        return
    src = fn.record(state, (expr.at, "held"), expr.at, text(expr), parents, unknown=True)
    for key, obj in state.objects(box):
        if not obj.elem.kinds and not obj.fields:
            state.heap[key] = obj.with_elem(V(UNKNOWN, src))


def call_inherited(
    fn: FunctionState, state: State, expr: ir.Call, box: V, name: str, args: Args, words: Words
) -> V | None:
    """The value of ``super().name(…)`` in a class of dicts or lists; None for a method that these lack."""
    cls = fn.function.cls
    kind = kind_of(fn.analyser.program, cls) if cls is not None else ""
    if name == "__init__":
        if kind:
            fill_container(fn, state, kind, box, args, words)
        return NONE_VALUE
    shown = expr.func.value if isinstance(expr.func, ir.Attr) else expr.func
    if not kind or not box.kinds & CONTAINER:
        return None
    if name == "__setitem__" and len(args) == len(expr.args) == 2:
        write_item(fn, state, box, args[0], args[1], ir.Subscript(expr.at, shown, expr.args[0]))
        return NONE_VALUE
    if name == "__getitem__" and len(args) == len(expr.args) == 1:
        return read_item(fn, state, box, args[0], ir.Subscript(expr.at, shown, expr.args[0]))
    if name == "__iter__":
        return make(fn, state, (expr.at, name), "list", element(fn, state, box))
    found = containers.call(fn, state, expr, box, name, args, words)
    return found if found.kinds else None


def store_anywhere(fn: FunctionState, state: State, place: ir.Expr, src: Sources, at: int) -> None:
    """A graph is stored in a variable whose members are unknown (a batch of a loader): from here on any part of it
    may have the graph."""
    held = state.env.get(place.id) if isinstance(place, ir.Name) else None
    if held is None or not src:
        return
    assert isinstance(place, ir.Name)
    put = fn.record(state, (at, "put", place.id), at, place.id, src, unknown=True)
    state.env[place.id] = held.but(src=held.src | put, bare=True)


def store_update(fn: FunctionState, state: State, expr: ir.Call, box: V, args: Args, words: Words) -> None:
    """``batch.update(out=out)`` of a possible dict: from here on it may hold the arguments."""
    if box.kinds & TREE and isinstance(expr.func, ir.Attr):
        src = EMPTY.union(*(tensors_within(fn, state, value).src for value in (*args, *words.values())))
        store_anywhere(fn, state, expr.func.value, src, expr.at)
    for path in ordered(box.syms):
        if path.steps not in ((), ("[]",)) or not path.root.startswith("p:"):
            continue  # an attribute may be any object: ``self.meter.update(loss=loss)``
        for word, value in words.items():
            if value.src and not word.startswith("**"):
                state.sym[path.then(f"[{word}]")] = value
