"""What is reachable from a value: the graphs of all that it holds, and the modules in a container."""

from __future__ import annotations

from memlint.analysis.domain.state import State
from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.domain.values import (
    CONTAINER,
    CPU,
    DATA,
    INSTANCE,
    MODULE,
    NONE,
    NOTHING,
    OF_MODULES,
    TENSORS,
    Ref,
    Source,
    V,
    join,
    join_all,
    ordered,
)
from memlint.analysis.transfer.heap import MAX_TOLD, marked, members, read_symbol, stored_by_key


def as_held(state: State, value: V) -> V:
    """A container whose members are modules, all of them, as another function sees it: ``{"encoder": encoder}``."""
    if not value.objs or not value.is_only(CONTAINER | NONE):
        return value
    held = [members(obj) if (obj := state.heap.get(key)) is not None else NOTHING for key in value.objs]
    if not all(one.is_only(MODULE | INSTANCE) and one.kinds & MODULE for one in held):
        return value
    told = {
        Ref("member", f"{ref.kind} {ref.key}:{ref.name}", name, args=(ref,))
        for key in value.objs
        if (obj := state.heap.get(key)) is not None
        for name, one in (*obj.fields.items(), ("", obj.elem))
        for ref in one.refs
        if ref.kind in ("instance", "extinstance")
    }
    return V(value.kinds, refs=frozenset((OF_MODULES, *(told if len(told) <= MAX_TOLD else ()))))


def tensors_within(frame: Summary, state: State, value: V, depth: int = 3) -> V:
    """The join of all tensors in a value: what a place keeps alive that keeps the value."""
    if not value.objs and not (value.kinds & CONTAINER and value.syms and not value.is_plain()):
        return value
    return _tensors_within(frame, state, value, depth, {})


def _tensors_within(frame: Summary, state: State, value: V, depth: int, known: dict[tuple[Source, int], V]) -> V:
    """``known``: the results so far by object and remaining depth, since objects may hold each other many times."""
    if depth == 0 or not (value.objs or (value.kinds & CONTAINER and value.syms)):
        return value
    if not value.objs:
        inner = join_all(read_symbol(frame, state, path.then("[]")) for path in value.syms)
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
    for key in ordered(value.objs):
        obj = state.heap.get(key)
        if obj is None:
            continue
        if (key, depth) not in known:
            frame.spend(1 + len(obj.fields) // 8)
            # (most members are plain: the same few values again and again)
            parts = [
                _tensors_within(frame, state, part, depth - 1, known) if part.objs or part.kinds & CONTAINER else part
                for part in (*obj.fields.values(), obj.elem)
                if part.kinds
            ]
            held = _on_host(join_all(parts), parts)
            known[key, depth] = marked(held, key) if obj.kind != "instance" else held
        found.append(known[key, depth])
    return join_all(found)


def _on_host(held: V, parts: list[V]) -> V:
    """The join of members: numbers and texts among them do not tell where the tensors are."""
    if held.device == CPU or not held.device & CPU or not held.kinds & TENSORS:
        return held
    only = all(part.device == CPU or part.is_only(NONE | DATA) for part in parts)
    return held.but(device=CPU) if only else held
