"""Methods of lists, dicts, sets, deques and queues."""

from __future__ import annotations

from collections.abc import Sequence

from memlint.analysis.domain.state import Obj, State
from memlint.analysis.domain.summary.function_state import FunctionState
from memlint.analysis.domain.values import (
    CALLABLE,
    CONTAINER,
    DATA_VALUE,
    EMPTY,
    MODULE,
    NONE_VALUE,
    NOTHING,
    OF_KEYS,
    TENSORS,
    UNKNOWN,
    UNKNOWN_VALUE,
    Ref,
    V,
    join,
    join_all,
    ordered,
)
from memlint.analysis.syntax.expression_text import text
from memlint.analysis.transfer.assignment import write_item
from memlint.analysis.transfer.heap import elements_of, make, read_item, tuple_of
from memlint.analysis.transfer.held_values import tensors_within
from memlint.analysis.transfer.loops import known_members
from memlint.analysis.transfer.stores import carry
from memlint.analysis.transfer.stores.emptied_places import drop_stores, empty
from memlint.analysis.transfer.stores.stores import store_value
from memlint.analysis.transfer.stores.written_keys import takes_same
from memlint.ir import nodes as ir

_ADDERS = {"append": 0, "appendleft": 0, "put": 0, "put_nowait": 0, "insert": 1}
_SPREADERS = frozenset({"extend", "extendleft"})


#: methods that store their argument, which may be bound to a variable (``record = losses.append``)
_STORING = frozenset({*_ADDERS, *_SPREADERS, "add", "update", "setdefault"})


def binds(base: V, name: str, found: V) -> bool:
    """Whether ``base.name`` is a container's own method that stores. ``found``: its value by the project's classes."""
    if name not in _STORING or found.resolved() or base.kinds & (TENSORS | MODULE):
        return False
    return bool(base.objs or base.syms) and (
        bool(base.kinds & CONTAINER) or (base.is_only(UNKNOWN) and (name in _ADDERS or name in _SPREADERS))
    )


def bound_method(base: V, expr: ir.Attr) -> V:
    """The bound method, to be called later."""
    return V(CALLABLE, refs=frozenset((Ref("bound", text(expr.value), expr.name, base),)))


def call_bound(fn: FunctionState, state: State, ref: Ref, args: list[V], words: dict[str, V], expr: ir.Call) -> V:
    """The value of ``record(loss)``, where ``record`` is ``losses.append``."""
    func = ir.Attr(expr.at, ir.Name(expr.at, ref.key), ref.name)
    shown = expr.args if len(expr.args) == len(args) else tuple(ir.Name(expr.at, "item") for _ in args)
    return call(fn, state, ir.Call(expr.at, func, shown, expr.keywords), ref.self_, ref.name, args, words)


def is_container_method(name: str, args: list[V]) -> bool:
    """Whether a method of this name and these arguments on an unknown object is a container's: it stores its
    argument, or lists members."""
    return lists_members(name, args) or (
        (name in _ADDERS or name in _SPREADERS or (name == "setdefault" and len(args) == 2)) and len(args) in (1, 2)
    )


def lists_members(name: str, args: list[V]) -> bool:
    """Whether a method of this name and these arguments lists the members of a dictionary."""
    return name in ("items", "values", "keys") and not args


def call(
    fn: FunctionState, state: State, expr: ir.Call, receiver: V, name: str, args: list[V], words: dict[str, V]
) -> V:
    """The value of ``container.name(…)``; NOTHING for a method that containers lack."""
    func = expr.func
    assert isinstance(func, ir.Attr)
    adds = name in _SPREADERS or (name == "add" and len(args) == 1 and not receiver.may_be(TENSORS))
    position = _ADDERS.get(name, 0 if adds else len(args))
    if position < len(args):
        value, shown = args[position], expr.args[position]
        fn.notes.note_kinds(shown, value)
        if name.startswith("put"):
            # a queue passes its members to unknown code
            fn.escape(tensors_within(fn, state, value).src)
            return NONE_VALUE
        value = elements_of(fn, state, value) if name in _SPREADERS else value
        store_value(fn, state, receiver, name, value, expr.at, text(shown), text(func.value))
        return NONE_VALUE
    if name == "update" and (args or words):
        return _update(fn, state, expr, func.value, receiver, args, words)
    if name == "clear":
        empty(fn, state, receiver)
        return NONE_VALUE
    if name in ("pop", "popleft", "popitem", "remove", "discard", "get_nowait"):
        known = name in ("pop", "popitem") and args and not receiver.objs
        if not known or (args[0].const is None and not takes_same(fn, expr, receiver.syms)):
            drop_stores(fn, state, receiver.objs | receiver.syms)
        return elements_of(fn, state, receiver)
    if name == "get":
        found = elements_of(fn, state, receiver)
        if args and args[0].const is not None and isinstance(expr.args[0], ir.Expr):
            found = read_item(fn, state, receiver, args[0], ir.Subscript(expr.at, func.value, expr.args[0]))
        return join(found, args[1]) if len(args) > 1 else found
    if name == "setdefault" and args:
        return _default_set(fn, state, receiver, args)
    if name in ("values", "items", "keys"):
        members = elements_of(fn, state, receiver)
        if name == "items":
            members = tuple_of(fn, state, expr.at, [DATA_VALUE, members])
        listed = make(fn, state, (expr.at, name), "list", DATA_VALUE if name == "keys" else members)
        return listed.but(refs=frozenset((OF_KEYS,))) if known_members(state, receiver) else listed
    if name == "copy":
        return make(fn, state, expr.at, "list", elements_of(fn, state, receiver))
    if name in ("sort", "reverse"):
        return NONE_VALUE
    if name in ("index", "count", "qsize", "empty", "full", "join", "format", "split"):
        return DATA_VALUE
    return NOTHING if not receiver.is_only(CONTAINER) else UNKNOWN_VALUE


def _update(
    fn: FunctionState, state: State, expr: ir.Call, place: ir.Expr, receiver: V, args: list[V], words: dict[str, V]
) -> V:
    """``stats.update(loss=loss)``, ``stats.update({"loss": loss})``, ``stats.update(others)``"""
    items = [(ir.Const(expr.at, "str", word.name), word.value) for word in expr.keywords if word.name]
    put_items(fn, state, expr.at, receiver, place, items, words)
    if len(args) == 1 and isinstance(expr.args[0], ir.DictDisplay):
        put_display(fn, state, expr.at, receiver, place, expr.args[0], args[0])
        return NONE_VALUE
    for key, obj in state.objects(receiver):
        fields = dict(obj.fields)
        for argument in args:
            for other in ordered(argument.objs):
                if other in state.heap:
                    fields.update(state.heap[other].fields)
        fields.update({word: value for word, value in words.items() if not word.startswith("**")})
        for word, value in fields.items():
            obj = obj.with_field(word, value)
        symbolic = [one.but(objs=EMPTY) for one in args if one.syms and one.kinds & (UNKNOWN | CONTAINER)]
        rest = join_all(elements_of(fn, state, one) for one in symbolic)
        state.heap[key] = obj.with_elem(join(obj.elem, rest)) if rest.src else obj
    return NONE_VALUE


def _default_set(fn: FunctionState, state: State, receiver: V, args: list[V]) -> V:
    """The value of ``losses.setdefault(name, [])``: the member that is there, or the default, which is stored."""
    found = elements_of(fn, state, receiver)
    if len(args) > 1:
        for key in ordered(receiver.objs):
            if key in state.heap:
                state.heap[key] = state.heap[key].with_elem(join(state.heap[key].elem, args[1]))
                _lives_as_long(state, args[1], state.heap[key])
        for path in ordered(receiver.syms):
            place_path = path.then("[]")
            state.sym[place_path] = join(state.sym.get(place_path, NOTHING), args[1])
    inside = elements_of(fn, state, receiver) if receiver.objs or receiver.syms else found
    return inside.but(syms=inside.syms | {path.then("[]") for path in receiver.syms})


def heap_function(fn: FunctionState, state: State, name: str, args: list[V], expr: ir.Call) -> V:
    """The value of a function of ``heapq``: ``heappush`` stores in a growing list; what removes a member bounds it."""
    if name == "heappush" and len(expr.args) == len(args) == 2:
        place = text(expr.args[0])
        store_value(fn, state, args[0], "append", args[1], expr.at, text(expr.args[1]), place)
        return NONE_VALUE
    if name in ("heappop", "heapreplace", "heappushpop"):
        drop_stores(fn, state, args[0].objs | args[0].syms)
    elements = elements_of(fn, state, args[0])
    return make(fn, state, expr.at, "list", elements) if name in ("nlargest", "nsmallest", "merge") else elements


def put_display(
    fn: FunctionState, state: State, at: int, container: V, place: ir.Expr, display: ir.DictDisplay, made: V
) -> None:
    """Set the members of a dict from a display: ``sums.update({"a": x, "b": y})``, ``sums |= {"a": x}``."""
    held = [obj for _, obj in state.objects(made)]
    for key, item in zip(display.keys, display.values, strict=True):
        if key is None:
            spread = elements_of(fn, state, fn.interpreter.evaluate(fn, state, item))
            for one in ordered(container.objs):
                state.heap[one] = state.heap[one].with_elem(join(state.heap[one].elem, spread))
            continue
        name = str(fn.interpreter.evaluate(fn, state, key).const)
        values = {name: join_all(obj.fields.get(name, obj.elem) for obj in held)}
        put_items(fn, state, at, container, place, [(key, item)], values)


def put_items(
    fn: FunctionState,
    state: State,
    at: int,
    container: V,
    place: ir.Expr,
    items: Sequence[tuple[ir.Expr, ir.Expr]],
    values: dict[str, V],
) -> None:
    """Set members of a dict, given by key and expression. ``values``: the values of the expressions by the key's
    constant."""
    for key, item in items:
        index = fn.interpreter.evaluate(fn, state, key)
        value = values.get(str(index.const), NOTHING)
        target = ir.Subscript(at, place, key)
        carry.note_built(fn, state, at, item, target, value)
        write_item(fn, state, container, index, value, target)


def _lives_as_long(state: State, made: V, holder: Obj) -> None:
    """The default that ``setdefault`` stores outlives the iteration that made it: it gets the lifetime of its
    container."""
    for key, obj in state.objects(made):
        if len(holder.loops) < len(obj.loops):
            state.heap[key] = Obj(obj.kind, obj.elem, obj.fields, holder.loops, obj.bounded, obj.cls, obj.text)
