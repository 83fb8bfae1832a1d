"""Methods of lists, dicts, sets, deques and queues."""

from __future__ import annotations

from memlint.flow.frame import Frame
from memlint.flow.heap import deep, elements_of, make, read_item, tuple_of
from memlint.flow.state import Obj, State
from memlint.flow.stores import store_value
from memlint.flow.syntax import text
from memlint.flow.values import CONTAINER, DATA_VALUE, NONE_VALUE, NOTHING, TENSORS, UNKNOWN_VALUE, V, join, ordered
from memlint.ir import nodes as ir

_ADDERS = {"append": 0, "appendleft": 0, "put": 0, "put_nowait": 0, "insert": 1}
_SPREADERS = frozenset({"extend", "extendleft"})


def is_container_method(name: str, args: list[V]) -> bool:
    """Whether a method of this name on an unknown object is a container's: it stores its argument, or lists members."""
    if name in ("items", "values", "keys") and not args:
        return True
    return (name in _ADDERS or name in _SPREADERS or (name == "setdefault" and len(args) == 2)) and len(args) in (1, 2)


def call(frame: Frame, state: State, expr: ir.Call, receiver: V, name: str, args: list[V], words: dict[str, V]) -> V:
    """``container.name(…)``; nothing for a method that containers lack."""
    func = expr.func
    assert isinstance(func, ir.Attr)
    place = text(func.value)
    if name in _ADDERS and len(args) > _ADDERS[name]:
        position = _ADDERS[name]
        frame.notes.note_kinds(expr.args[position], args[position])
        if name.startswith("put"):
            # a queue hands over: somebody else takes what is put
            frame.escape(deep(frame, state, args[position]).src)
            return NONE_VALUE
        store_value(frame, state, receiver, name, args[position], expr.at, text(expr.args[position]), place)
        return NONE_VALUE
    if name == "add" and len(args) == 1 and not receiver.may_be(TENSORS):
        frame.notes.note_kinds(expr.args[0], args[0])
        store_value(frame, state, receiver, "add", args[0], expr.at, text(expr.args[0]), place)
        return NONE_VALUE
    if name in _SPREADERS and args:
        frame.notes.note_kinds(expr.args[0], args[0])
        store_value(
            frame, state, receiver, name, elements_of(frame, state, args[0]), expr.at, text(expr.args[0]), place
        )
        return NONE_VALUE
    if name == "update" and (args or words):
        for key in ordered(receiver.objs):
            obj = state.heap.get(key)
            if obj is None:
                continue
            fields = dict(obj.fields)
            for given in args:
                for other in ordered(given.objs):
                    if other in state.heap:
                        fields.update(state.heap[other].fields)
            fields.update({word: value for word, value in words.items() if not word.startswith("**")})
            for word, value in fields.items():
                obj = obj.with_field(word, value)
            state.heap[key] = obj
        return NONE_VALUE
    if name == "clear":
        from memlint.flow.letting_go import empty

        empty(frame, state, receiver)
        return NONE_VALUE
    if name in ("pop", "popleft", "popitem", "remove", "discard", "get_nowait"):
        from memlint.flow.stores import forget

        if name not in ("pop", "popitem") or not args or receiver.objs:
            forget(frame, state, receiver.objs | receiver.syms)
        return elements_of(frame, state, receiver)
    if name == "get":
        found = elements_of(frame, state, receiver)
        if args and args[0].const is not None and isinstance(expr.args[0], ir.Expr):
            found = read_item(frame, state, receiver, args[0], ir.Subscript(expr.at, func.value, expr.args[0]))
        return join(found, args[1]) if len(args) > 1 else found
    if name == "setdefault" and args:
        found = elements_of(frame, state, receiver)
        if len(args) > 1:
            for key in ordered(receiver.objs):
                if key in state.heap:
                    state.heap[key] = state.heap[key].with_elem(join(state.heap[key].elem, args[1]))
                    _lives_as_long(state, args[1], state.heap[key])
            for path in ordered(receiver.syms):
                place_path = path.then("[]")
                state.sym[place_path] = join(state.sym.get(place_path, NOTHING), args[1])
        inside = elements_of(frame, state, receiver) if receiver.objs or receiver.syms else found
        return inside.but(syms=inside.syms | {path.then("[]") for path in receiver.syms})
    if name == "values":
        return make(frame, state, (expr.at, "values"), "list", elements_of(frame, state, receiver))
    if name == "items":
        pair = tuple_of(frame, state, expr.at, [DATA_VALUE, elements_of(frame, state, receiver)])
        return make(frame, state, (expr.at, "items"), "list", pair)
    if name == "keys":
        return make(frame, state, (expr.at, "keys"), "list", DATA_VALUE)
    if name == "copy":
        return make(frame, state, expr.at, "list", elements_of(frame, state, receiver))
    if name in ("sort", "reverse"):
        return NONE_VALUE
    if name in ("index", "count", "qsize", "empty", "full"):
        return DATA_VALUE
    if name in ("join", "format", "split"):
        return DATA_VALUE
    return NOTHING if not receiver.is_only(CONTAINER) else UNKNOWN_VALUE


def _lives_as_long(state: State, made: V, holder: Obj) -> None:
    """What ``setdefault`` puts into a container stays there: it is no longer the round's own."""
    for key in ordered(made.objs):
        obj = state.heap.get(key)
        if obj is not None and len(holder.loops) < len(obj.loops):
            state.heap[key] = Obj(obj.kind, obj.elem, obj.fields, holder.loops, obj.bounded, obj.cls, obj.text)
