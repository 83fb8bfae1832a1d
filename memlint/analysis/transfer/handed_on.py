"""Bound methods and partial functions that are passed on: ``fit(…, recorder.record)``,
``Engine(on_step=losses.append)``.

The receiver does not know the object that the callable is bound to, but it has a symbol for it: the ``__self__`` of the
parameter. The stored arguments of a partial function are its ``args`` and ``keywords``.
"""

from __future__ import annotations

from memlint.analysis.domain.state import State
from memlint.analysis.domain.summary.function_state import FunctionState
from memlint.analysis.domain.values import (
    CONTAINER,
    INSTANCE,
    MODULE,
    NOTHING,
    UNKNOWN,
    Path,
    Ref,
    V,
    join,
    join_all,
    ordered,
)
from memlint.analysis.transfer.heap import make

#: the root of symbols for what a stored callable is bound to, until the attribute or variable that holds it is read
HOLDER = Path("h:")
_SELF, _FUNC, _ARGS, _WORDS = ".__self__", ".func", ".args", ".keywords"


def bound_at(value: V, path: Path) -> V:
    """A callable of another function, with symbols of the place ``path`` for the objects that it is bound to."""
    if not any(map(_is_bound, value.refs)):
        return value
    return value.but(refs=frozenset(_at(ref, path) for ref in value.refs))


def with_holder(value: V, path: Path) -> V:
    """The value of an attribute or a variable that is read at ``path``, whose symbols replace those of `HOLDER`."""
    return bound_at(value, path) if any(HOLDER.root in _roots(ref) for ref in value.refs) else value


def without_holder(value: V) -> V:
    """A callable of an object without a symbol: the objects that its methods are bound to are unknown."""
    return value.but(refs=frozenset(ref for ref in value.refs if HOLDER.root not in _roots(ref)))


def _roots(ref: Ref) -> frozenset[str]:
    if not _is_bound(ref):
        return frozenset()
    bound = (ref.self_, *ref.args, *(value for _, value in ref.keywords))
    own = {path.root for value in bound if value is not None for path in value.syms}
    inner = (_roots(one) for value in bound if value is not None for one in value.refs)
    return frozenset(own).union(*inner)


def _is_bound(ref: Ref) -> bool:
    """Whether a callable is bound to objects or arguments of the function that made it."""
    return ref.kind == "partial" or is_of_object(ref)


def is_of_object(ref: Ref) -> bool:
    """Whether a callable is a method of a container, or of an object other than a module."""
    if ref.kind == "bound":
        return True
    own = ref.self_ if ref.kind == "func" else None
    return own is not None and bool(own.kinds & INSTANCE) and not own.kinds & MODULE and bool(own.objs or own.syms)


def _at(ref: Ref, path: Path) -> Ref:
    """The reference with symbols of ``path`` in place of the objects and arguments that it is bound to."""
    if not _is_bound(ref) or ref.self_ is None:
        return ref
    if ref.kind == "bound":
        place = path.then(_SELF)
        return ref._replace(key=place.text, self_=V(CONTAINER, syms=frozenset((place,))))
    if ref.kind == "func":
        return ref._replace(self_=_placed(ref.self_, path.then(_SELF)))
    args = tuple(_placed(value, path.then(_ARGS).then(f"[{at}]")) for at, value in enumerate(ref.args))
    words = tuple((name, _placed(value, path.then(_WORDS).then(f"[{name}]"))) for name, value in ref.keywords)
    return ref._replace(self_=bound_at(ref.self_, path.then(_FUNC)), args=args, keywords=words)


def _placed(value: V, path: Path) -> V:
    """A value of another function, with symbols of a place here."""
    if not value.objs and not value.syms and not value.src:
        return bound_at(value, path)
    place = frozenset((path,))
    kinds = value.kinds & ~UNKNOWN if value.refs or value.kinds & CONTAINER else value.kinds
    plain = not kinds & ~(CONTAINER | INSTANCE | MODULE)
    return V(kinds or UNKNOWN, frozenset() if plain and kinds else place, refs=value.refs, syms=place)


def part_of_callable(fn: FunctionState, state: State, base: V, name: str) -> V:
    """The value of ``method.__self__``, ``partial.func``, ``partial.args`` or ``partial.keywords``; NOTHING for
    other attributes."""
    known = [ref for ref in ordered(base.refs) if _is_bound(ref) and ref.self_ is not None]
    if name == _SELF[1:]:
        return join_all(ref.self_ for ref in known if ref.kind != "partial" and ref.self_ is not None)
    found = NOTHING
    for ref in known:
        if ref.kind != "partial" or ref.self_ is None:
            continue
        if name == _FUNC[1:]:
            found = join(found, ref.self_)
        elif name == _ARGS[1:]:
            fields = {str(at): value for at, value in enumerate(ref.args)}
            found = join(found, make(fn, state, ("partial", repr(ref.self_), name), "tuple", NOTHING, fields))
        elif name == _WORDS[1:]:
            words = dict(ref.keywords)
            found = join(found, make(fn, state, ("partial", repr(ref.self_), name), "dict", NOTHING, words))
    return found


def outside(value: V) -> V:
    """A value as another function sees it: without this function's objects and graph sources."""
    refs = bound_at(value, HOLDER).refs  # the callables are bound to objects of this function
    return V(value.kinds, objs=frozenset(), refs=refs, device=value.device, size=value.size, const=value.const)
