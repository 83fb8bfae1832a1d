"""Stores into a member of a dictionary: ``out[name]["boxes"] = boxes`` adds to ``out`` if the name is new."""

from __future__ import annotations

from memlint.analysis.domain.events import PlaceKind
from memlint.analysis.domain.state import State
from memlint.analysis.domain.summary.function_state import FunctionState
from memlint.analysis.domain.values import Source, V, ordered
from memlint.analysis.syntax.expression_text import text
from memlint.analysis.transfer.heap import current_position
from memlint.analysis.transfer.held_values import tensors_within
from memlint.analysis.transfer.stores.sample_keys import by_sample
from memlint.analysis.transfer.stores.stores import kind_of, note_store, parts_of
from memlint.analysis.transfer.stores.written_keys import counted_by
from memlint.ir import nodes as ir


def note_in_member(
    fn: FunctionState, state: State, how: str, value: V, member: ir.Expr, at: int, shown: str, written: ir.Expr
) -> None:
    """Record that what enters a member of a dictionary (``member``: ``out[name]``), which each round of a loop makes
    anew under another key, adds to the dictionary. ``written``: the place that is written, the member or a part."""
    if not isinstance(member, ir.Subscript) or isinstance(member.index, ir.Slice):
        return
    growing = counted_by(fn, member.index) or by_sample(fn, member, written)
    if not growing:
        return
    whole = fn.interpreter.evaluate(fn, state, member.value)
    places: list[tuple[Source, PlaceKind]] = [
        (key, "local")
        for key in ordered(whole.objs)
        if (obj := state.heap.get(key)) is not None and obj.kind == "dict" and not obj.bounded
    ]
    places += [(path, kind_of(path)) for path in ordered(whole.syms)]
    inner, parts = tensors_within(fn, state, value), parts_of(fn, state, value)
    for place in places:
        note_store(fn, state, "retain", how, *place, text(member), inner, at, shown, parts=parts, growing=growing)


def note_part(fn: FunctionState, state: State, value: V, target: ir.Subscript) -> None:
    """Record ``out[name]["boxes"] = value`` as `note_in_member` does."""
    statement = fn.statement
    shown = text(statement.value) if isinstance(statement, ir.Assign) else text(target)
    note_in_member(fn, state, "key", value, target.value, current_position(fn), shown, target)


def outlives_no_loop(fn: FunctionState, state: State, container: V) -> bool:
    """Whether each container that a value may be is made anew in every round around this point."""
    made = [state.heap.get(key) for key in container.objs]
    known = bool(made) and not container.syms
    return known and all(obj is not None and fn.innermost(obj.loops) is None for obj in made)
