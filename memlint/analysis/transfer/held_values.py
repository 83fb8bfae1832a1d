"""What is reachable from a value: the graphs of all that it holds, and the modules in a container."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import TypeVar

from memlint.analysis.domain.state import State
from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.domain.values import (
    CONTAINER,
    CPU,
    DATA,
    INSTANCE,
    LOADER,
    MODULE,
    NONE,
    OF_LOADERS,
    OF_MODULES,
    OF_OBJECTS,
    TENSORS,
    Path,
    Ref,
    Source,
    V,
    join,
    join_all,
    ordered,
)
from memlint.analysis.transfer.heap import MAX_MEMBERS, marked, read_symbol, stored_by_key

_K = TypeVar("_K")


def as_held(state: State, value: V) -> V:
    """A container as another function sees it, with what its members are where they are loaders, modules or objects of
    the project: ``{"encoder": encoder}``, ``[Meter(), Meter()]``, and of ``{"model": model, "losses": []}`` the
    model."""
    if not value.objs or not value.is_only(CONTAINER | NONE) or not value.objs <= state.heap.keys():
        return value
    each = [
        (name, one)
        for obj in map(state.heap.__getitem__, value.objs)
        for name, one in (*obj.fields.items(), ("", obj.elem))
        if one.kinds
    ]
    if each and all(one.is_only(LOADER) for _, one in each):
        return V(value.kinds, refs=frozenset((OF_LOADERS,)))
    others = {name for name, one in each if not _is_object(one)}
    refs = {_member_ref(name, one) for name, one in each if name not in others and (name or not others)}
    whole = OF_MODULES if all(one.kinds & MODULE for _, one in each) else OF_OBJECTS
    known = {*([whole] if each and not others else ()), *(refs if len(refs) <= MAX_MEMBERS else ())}
    return V(value.kinds, refs=frozenset(known)) if known else value


def _member_ref(name: str, member: V) -> Ref:
    refs = [ref for ref in ordered(member.refs) if ref.kind in ("instance", "extinstance")]
    key = " ".join(f"{ref.kind} {ref.key}:{ref.name}" for ref in refs)
    return Ref("member", key, name, V(member.kinds, refs=frozenset(refs)))


def _is_object(value: V) -> bool:
    """Whether a member is a module, or an object of a class of the project."""
    return value.is_only(MODULE | INSTANCE) and bool(value.kinds & MODULE or value.refs)


def tensors_within(summary: Summary, state: State, value: V, depth: int = 3) -> V:
    """The join of all tensors that a value is or holds: a place that keeps the value keeps them alive."""
    if not value.objs and not (value.kinds & CONTAINER and value.syms and not value.is_plain()):
        return value
    return _tensors_within(summary, state, value, depth, {})


def places_with(summary: Summary, state: State | None, marks: AbstractSet[Source]) -> list[Path]:
    """The places outside of the function that hold parts of these graphs in a state."""
    return _holding(summary, state, marks, state.sym) if state is not None else []


def variables_with(summary: Summary, state: State, marks: AbstractSet[Source]) -> list[str]:
    """The function's variables that hold parts of these graphs in a state."""
    return _holding(summary, state, marks, state.env)


def _holding(summary: Summary, state: State, marks: AbstractSet[Source], values: Mapping[_K, V]) -> list[_K]:
    closure = summary.graphs.closure
    return [key for key, value in values.items() if marks & closure(tensors_within(summary, state, value).src)]


def _tensors_within(summary: Summary, state: State, value: V, depth: int, known: dict[tuple[Source, int], V]) -> V:
    """See `tensors_within`. ``known``: the results so far by object and remaining depth, since objects may share
    members."""
    if depth == 0 or not (value.objs or (value.kinds & CONTAINER and value.syms)):
        return value
    if not value.objs:
        inner = join_all(read_symbol(state, path.then("[]")) for path in value.syms)
        inner = join(inner, join_all(stored_by_key(state, path) for path in value.syms))
        return (
            join(value.but(kinds=value.kinds & ~CONTAINER, syms=frozenset()), inner)
            if value.kinds & ~CONTAINER
            else inner
        )
    found = [
        V(
            value.kinds & ~CONTAINER,
            value.src,
            bare=value.bare,
            size=value.size,
            device=value.device,
            syms=value.syms,
            store=value.store,
            extent=value.extent,
        )
    ]
    for key, obj in state.objects(value):
        if (key, depth) not in known:
            summary.spend(1 + len(obj.fields) // 8)
            # most members hold nothing, and need no further step
            parts = [
                _tensors_within(summary, state, part, depth - 1, known) if part.objs or part.kinds & CONTAINER else part
                for part in obj.members
                if part.kinds
            ]
            held = _on_host(join_all(parts), parts)
            known[key, depth] = marked(held, key) if obj.kind != "instance" else held
        found.append(known[key, depth])
    return join_all(found)


def _on_host(held: V, parts: list[V]) -> V:
    """The join of members, on the host where all tensors among them are: numbers and texts do not count."""
    if held.device == CPU or not held.device & CPU or not held.kinds & TENSORS:
        return held
    only = all(part.device == CPU or part.is_only(NONE | DATA) for part in parts)
    return held.but(device=CPU) if only else held
