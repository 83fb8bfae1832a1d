"""In-place writes into a view of a tensor: the tensor takes over the graph of what is written."""

from __future__ import annotations

from memlint import knowledge
from memlint.analysis.domain.state import OFF, State
from memlint.analysis.domain.summary.function_state import FunctionState
from memlint.analysis.domain.values import ELSEWHERE, TENSORS, V
from memlint.ir import nodes as ir

#: attributes of a tensor that are views of it
_VIEWS = frozenset({"T", "mT", "H", "mH", "real", "imag"})


def write_into_view(fn: FunctionState, state: State, place: ir.Expr, base: V, value: V) -> None:
    """Record a write of graphs into the tensor ``base``, the value of ``place``: ``rows[i]`` in ``rows[i][j] = value``
    and in ``rows[i].copy_(value)``. The variable with the whole tensor takes the graphs over. If the whole has no name,
    or several, they are unknown."""
    if not value.src or base.syms or state.grad == OFF:
        return
    whole = _whole(place)
    held = state.env.get(whole.id) if isinstance(whole, ir.Name) else None
    if isinstance(whole, ir.Name) and held is not None and held.is_only(TENSORS):
        if whole is not place:
            state.env[whole.id] = held.but(src=held.src | value.src, bare=held.bare or not held.src)
        if not _has_other_names(state, whole.id, held):
            return
    if whole is not None:
        fn.leave(fn.graphs.closure(value.src))


def _whole(place: ir.Expr) -> ir.Expr | None:
    """The expression of the tensor that a place is a view of, or the place itself. None where autograd does not see a
    write: ``rows.data[i]``."""
    while True:
        match place:
            case ir.Subscript():
                place = place.value
            case ir.Attr(name=name) if name in _VIEWS:
                place = place.value
            case ir.Attr(name="data") | ir.Call(func=ir.Attr(name="detach")):
                return None
            case ir.Call(func=ir.Attr(name=name, value=whole)) if name in knowledge.methods().alias:
                place = whole
            case _:
                return place


def _has_other_names(state: State, name: str, held: V) -> bool:
    """Whether another variable holds the tensor as well, or a view of it: ``rows`` for ``row = rows[0]``."""
    shared = held.store - {ELSEWHERE}
    return bool(shared) and any(shared & value.store for other, value in state.env.items() if other != name)
