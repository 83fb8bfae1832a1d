"""The abstract state at a program point: variables, heap, attribute writes, grad mode, freed graphs."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from typing import Any

from memlint.analysis.domain.values import EMPTY, NOTHING, UNKNOWN, Path, Source, Sources, V, join, ordered
from memlint.analysis.syntax.memo import cleared_at_end

#: a set of grad modes: on, off, and the caller's mode
ON, OFF, AMBIENT = 1, 2, 4
#: names in torch that turn grad mode off
GUARDS = frozenset({"no_grad", "inference_mode", "set_grad_enabled"})

#: listed by name, as compiled classes lack `__slots__`
OBJECT_FIELDS = ("bounded", "cls", "elem", "fields", "kind", "loops", "text")
STATE_FIELDS = (
    "env", "freed_may", "freed_must", "fresh", "grad", "heap", "making", "met", "modes", "pending", "sym",
)  # fmt: skip


class Obj:
    """A heap object: a container or an instance, identified by its allocation site.

    ``loops``: the loops around the allocation, which bound its lifetime. ``bounded``: it drops old members itself.
    ``fields``: attributes, constant keys, positions of a tuple; ``elem``: the join of all other members. Immutable by
    convention.
    """

    __slots__ = OBJECT_FIELDS

    def __init__(
        self,
        kind: str,
        elem: V = NOTHING,
        fields: dict[str, V] | None = None,
        loops: tuple[Source, ...] = (),
        bounded: bool = False,
        cls: Any = None,
        text: str = "",
    ) -> None:
        self.kind = kind
        self.elem = elem
        self.fields = fields or {}
        self.loops = loops
        self.bounded = bounded
        self.cls = cls
        self.text = text

    @property
    def members(self) -> tuple[V, ...]:
        """What it holds: the value of each field, and the join of all other members."""
        return (*self.fields.values(), self.elem)

    @property
    def ordered(self) -> list[V]:
        """The members of a tuple or list by position. Those of a named tuple have names as well."""
        return [item for name, item in self.fields.items() if name.isdigit()]

    def with_field(self, name: str, value: V) -> Obj:
        return Obj(self.kind, self.elem, {**self.fields, name: value}, self.loops, self.bounded, self.cls, self.text)

    def with_elem(self, value: V) -> Obj:
        return Obj(self.kind, value, self.fields, self.loops, self.bounded, self.cls, self.text)

    def emptied(self) -> Obj:
        return Obj(self.kind, NOTHING, {}, self.loops, self.bounded, self.cls, self.text)

    def same(self, other: Obj) -> bool:
        return self is other or (
            self.elem == other.elem and self.fields == other.fields and self.bounded == other.bounded
        )


def join_objects(a: Obj, b: Obj) -> Obj:
    if a.same(b):
        return a
    fields = dict(a.fields)
    for name, value in b.fields.items():
        fields[name] = join(fields[name], value) if name in fields else value
    return Obj(a.kind, join(a.elem, b.elem), fields, a.loops, a.bounded and b.bounded, a.cls, a.text)


class State:
    """Mutable while one path is interpreted; copied at every fork.

    ``sym``: what this function stored at symbolic places. ``freed_must`` / ``freed_may``: sources whose graph a
    backward has freed on every / some path. ``pending``: stores of this iteration that nothing has undone. ``making``:
    in ``__init__``, the root of the new object, which has only the attributes set so far. ``fresh``: objects allocated
    in this iteration on every path. ``modes``: the modules in eval mode (True) or train mode (False), None if paths
    differ. ``met``: by test, what each branch of an earlier ``if`` left (`memlint.analysis.domain.path_correlation`);
    never changed in place.
    """

    __slots__ = STATE_FIELDS

    def __init__(self, grad: int = AMBIENT) -> None:
        self.env: dict[str, V] = {}
        self.heap: dict[Source, Obj] = {}
        self.sym: dict[Path, V] = {}
        self.grad = grad
        self.freed_must: Sources = EMPTY
        self.freed_may: Sources = EMPTY
        self.pending: Sources = EMPTY
        self.fresh: Sources = EMPTY
        self.making = ""
        self.modes: dict[Source, bool | None] = {}
        self.met: dict[str, Any] = {}

    def objects(self, value: V) -> Iterator[tuple[Source, Obj]]:
        """The known objects that a value may be, with their keys, in an order that is the same in every run."""
        for key in ordered(value.objs):
            if (obj := self.heap.get(key)) is not None:
                yield key, obj

    def copy(self) -> State:
        new = State()
        new.env = self.env.copy()
        new.heap = self.heap.copy()
        new.sym = self.sym.copy()
        new.grad = self.grad
        new.freed_must = self.freed_must
        new.freed_may = self.freed_may
        new.pending = self.pending
        new.fresh = self.fresh
        new.making = self.making
        new.modes = self.modes.copy()
        new.met = self.met
        return new

    def take(self, other: State) -> None:
        """Become the other state."""
        for slot in STATE_FIELDS:
            setattr(self, slot, getattr(other, slot))

    def same(self, other: State) -> bool:
        return (
            self.env == other.env
            and self.sym == other.sym
            and self.grad == other.grad
            and self.freed_must == other.freed_must
            and self.freed_may == other.freed_may
            and self.pending == other.pending
            and self.heap.keys() == other.heap.keys()
            and all(obj is other.heap[key] or obj.same(other.heap[key]) for key, obj in self.heap.items())
        )


def join_states(a: State | None, b: State | None) -> State | None:
    """The join of two paths' states, field by field. None is a path that does not come here."""
    if a is None or a is b:
        return b
    if b is None:
        return a
    new = State(a.grad | b.grad)
    new.env = _join_maps(a.env, b.env)
    new.heap = heap = a.heap.copy()
    gone_from_a, gone_from_b = _gone(a, b), _gone(b, a)
    for key, obj in b.heap.items():
        mine = heap.get(key)
        if mine is obj or key in gone_from_b:
            continue
        heap[key] = obj if mine is None or key in gone_from_a else join_objects(mine, obj)
    new.sym = sym = a.sym.copy()
    new.making = a.making
    for path, value in b.sym.items():
        held = sym.get(path)
        if held is not value:
            sym[path] = join(held or _before(a, path), value)
    for path, value in a.sym.items():
        if path not in b.sym:
            sym[path] = join(value, _before(a, path))
    new.freed_must = a.freed_must & b.freed_must
    new.freed_may = a.freed_may | b.freed_may
    new.pending = a.pending | b.pending
    new.fresh = (a.fresh & b.fresh) | gone_from_a | gone_from_b
    if a.modes or b.modes:
        new.modes = _join_modes(a, b)
    if a.met and b.met:
        new.met = a.met if a.met is b.met else {key: one for key, one in a.met.items() if b.met.get(key) is one}
    return new


def join_effects(skipped: State, state: State) -> None:
    """Weaken the effects of an operand that only some paths evaluate from "must" to "may". Variables are not
    changed."""
    state.grad |= skipped.grad
    state.freed_must &= skipped.freed_must
    if state.modes != skipped.modes:
        state.modes = _join_modes(skipped, state)


def _join_modes(a: State, b: State) -> dict[Source, bool | None]:
    """The modes on which both paths agree, and those of modules that only one path has made."""
    joined = {
        key: mode if (mode := a.modes.get(key)) == b.modes.get(key) else None
        for key in dict.fromkeys((*a.modes, *b.modes))
    }
    for one, other in ((a, b), (b, a)):
        alone = {key: made for key in one.modes if key not in other.modes and (made := maker_of(key)) is not None}
        known = _stores(other) if alone else EMPTY
        joined.update({key: one.modes[key] for key, made in alone.items() if made not in known})
    return joined


#: facts about a module beside its mode: no parameter requires grad; its constructor put it into eval mode
TAGS = ("frozen", "starts")


def without_tag(key: Source) -> Source:
    """The key of the module that a recorded mode (or frozenness) is about."""
    return key[1] if isinstance(key, tuple) and not isinstance(key, Path) and key[0] in TAGS else key


def maker_of(key: Source) -> Source | None:
    """The call that made the module of a recorded mode; None if the module is known otherwise."""
    key = without_tag(key)
    return around_parts(key[1]) if isinstance(key, tuple) and not isinstance(key, Path) and key[0] == "made" else None


def around_parts(item: Source) -> Source:
    """The storage of the outermost whole that a storage is a part of; itself if it is no part."""
    while isinstance(item, tuple) and not isinstance(item, Path) and item[0] == "part":
        item = item[1]
    return item


def _stores(state: State) -> Sources:
    """The storages of all values in a state, or of their wholes."""
    found: set[Source] = set()
    for value in (*state.env.values(), *state.sym.values()):
        found |= value.store
    for obj in state.heap.values():
        found |= obj.elem.store
        for value in obj.fields.values():
            found |= value.store
    return frozenset(map(around_parts, found))


def _gone(state: State, other: State) -> Sources:
    """Objects of an earlier iteration that nothing refers to on one path, while the other path has allocated them anew.
    Their old members are not part of the join."""
    stale = [key for key in other.fresh if key not in state.fresh and key in state.heap]
    if not stale:
        return EMPTY
    held = reachable(state)
    return frozenset(key for key in stale if key not in held)


def reachable(state: State) -> Sources:
    """The objects that are reachable from a variable or an attribute."""
    return with_members(
        state, {key for value in (*state.env.values(), *state.sym.values()) if value.objs for key in value.objs}
    )


def with_members(state: State, keys: AbstractSet[Source]) -> Sources:
    """Some objects with all that they hold, transitively: a dictionary and its lists."""
    seen: set[Source] = set()
    todo = keys
    while todo:
        seen |= todo
        found: set[Source] = set()
        for key in todo:
            obj = state.heap.get(key)
            if obj is None:
                continue
            if obj.elem.objs:
                found |= obj.elem.objs
            for value in obj.fields.values():
                if value.objs:
                    found |= value.objs
        todo = found - seen
    return frozenset(seen) or EMPTY


def width(state: State) -> int:
    """The number of sources in all values that the state stores."""
    held = sum(len(obj.elem.src) + sum(len(value.src) for value in obj.fields.values()) for obj in state.heap.values())
    return held + sum(len(value.src) for value in state.sym.values())


def _before(state: State, path: Path) -> V:
    """The value of a symbolic place on the path that does not store there."""
    return NOTHING if path.root == state.making and len(path.steps) == 1 else untouched(path)


def untouched(path: Path) -> V:
    """The value of a symbolic place without a store."""
    return V(UNKNOWN, frozenset((path,)), syms=frozenset((path,)))


def _join_maps(a: dict[str, V], b: dict[str, V]) -> dict[str, V]:
    if a == b:
        return a.copy()
    new = a.copy()
    for name, value in b.items():
        mine = new.get(name)
        new[name] = value if mine is None else mine if mine is value else _joined(mine, value)
    return new


#: a memo, as each branch of a chain joins the same two values again
_JOINED: dict[tuple[int, int], tuple[V, V, V]] = {}
_MAX_JOINED = 10_000
cleared_at_end(_JOINED)


def _joined(a: V, b: V) -> V:
    """The join of two values; ``b`` itself if the join equals it."""
    key = (id(a), id(b))
    known = _JOINED.get(key)
    if known is None:
        if len(_JOINED) >= _MAX_JOINED:
            _JOINED.clear()
        made = join(a, b)
        known = _JOINED[key] = (a, b, b if made is not a and made == b else made)
    return known[2]
