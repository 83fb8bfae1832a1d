"""Tensors that grow by concatenation onto themselves: ``x = torch.cat([x, part])``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeGuard

from memlint.analysis.domain.bound_names import argument
from memlint.analysis.domain.periods import few_members
from memlint.analysis.domain.state import State
from memlint.analysis.domain.summary.effects import LoopState
from memlint.analysis.domain.summary.function_state import FunctionState
from memlint.analysis.domain.values import DATA, NONE, NOTHING, TENSORS, UNKNOWN, Path, Source, V, join
from memlint.analysis.syntax.expression_text import text
from memlint.analysis.syntax.syntax import last_name, under_calls
from memlint.analysis.transfer.held_values import tensors_within
from memlint.analysis.transfer.stores.class_places import picking_name, place_of
from memlint.analysis.transfer.stores.stores import begun_store, carried_by
from memlint.ir import nodes as ir

#: functions that concatenate tensors
CATS = frozenset({
    "cat", "concat", "concatenate", "stack", "hstack", "vstack", "dstack", "row_stack", "column_stack",
})  # fmt: skip


def note_concatenation(fn: FunctionState, state: State, statement: ir.Assign | ir.AnnAssign, target: ir.Expr) -> bool:
    """Whether the assigned value is a concatenation; a target that grows by it is recorded."""
    if statement.value is None:
        return False
    found = False
    for call in _results(statement.value):
        parts = _parts(fn, state, call)
        if parts is None:
            continue
        found = True
        _note(fn, state, statement, target, parts)
    return found


def _results(expr: ir.Expr) -> Iterator[ir.Call]:
    """The calls whose result may be the expression's value, behind conditions and moves to a device."""
    if isinstance(expr, ir.IfExp):
        yield from _results(expr.body)
        yield from _results(expr.orelse)
    elif isinstance(expr, ir.Call):
        if isinstance(expr.func, ir.Attr) and expr.func.name in PASSED and isinstance(expr.func.value, ir.Call):
            yield from _results(expr.func.value)
        else:
            yield expr


def _parts(fn: FunctionState, state: State, call: ir.Call) -> tuple[ir.Expr, ...] | None:
    """The operands of a concatenation: the members of a display; () where they are unknown, None for another call."""
    name = last_name(call.func)
    if name in CATS and _of_torch(fn, state, call.func, name):
        tensors = argument(call, 0, "tensors")
        return tensors.elements if isinstance(tensors, ir.Display) else ()
    if name and call.args:
        return _through_helper(fn, state, call)
    return None


def _of_torch(fn: FunctionState, state: State, func: ir.Expr, name: str) -> bool:
    return any(
        ref.kind == "ext" and ref.name == f"torch.{name}" for ref in fn.interpreter.evaluate(fn, state, func).refs
    )


def _through_helper(fn: FunctionState, state: State, call: ir.Call) -> tuple[ir.Expr, ...] | None:
    """The operands of a project function's call that returns ``torch.cat([a, b])`` of its parameters; None for
    another call."""
    if not isinstance(call.func, ir.Name | ir.Attr) or len(call.args) < 2:
        return None
    for ref in fn.interpreter.evaluate(fn, state, call.func).refs:
        function = fn.analyser.function(ref) if ref.kind == "func" and ref.self_ is None else None
        if function is None or len(function.body) > 3 or function is fn.function:
            continue
        last = function.body[-1] if function.body else None
        if not isinstance(last, ir.Return) or not isinstance(last.value, ir.Call):
            continue
        inner = last.value
        if not isinstance(inner.func, ir.Attr | ir.Name) or not inner.args or not isinstance(inner.args[0], ir.Display):
            continue
        kind, what = fn.analyser.program.find_expression(function.module, inner.func, function)
        if kind != "ext" or what not in {f"torch.{name}" for name in CATS}:
            continue
        names = [param.name for param in function.params]
        positions = [
            names.index(item.id) for item in inner.args[0].elements if isinstance(item, ir.Name) and item.id in names
        ]
        if all(position < len(call.args) for position in positions):
            return tuple(call.args[position] for position in positions)
    return None


def _note(
    fn: FunctionState, state: State, statement: ir.Assign | ir.AnnAssign, target: ir.Expr, parts: tuple[ir.Expr, ...]
) -> None:
    """Record a target that is concatenated with its old value."""
    if isinstance(target, ir.Subscript) and not is_member(target):
        return
    place = text(target, 200)
    olds = [part for part in parts if is_same(part, place)]
    if not olds or len(parts) < 2 or few_members(fn):
        return
    found = place_of(fn, state, target)
    if found is None:
        return
    old = fn.interpreter.evaluate(fn, state, target)
    index = picking_name(target)
    if index and isinstance(found.place, Path):
        return  # more likely a list of a few levels than a dictionary
    carried, loop = _carried(fn, found.place, old, index)
    if not carried:
        return
    incoming = NOTHING
    for part in parts:
        if part not in olds:
            inner = part.value if isinstance(part, ir.Starred) else part
            incoming = join(incoming, tensors_within(fn, state, fn.interpreter.evaluate(fn, state, inner)))
    if not incoming.may_be(TENSORS | UNKNOWN) or incoming.is_only(DATA | NONE):
        return
    key = ("s", statement.at, found.place, "cat", None)
    before = fn.stores.get(key)
    extents = [incoming.extent, old.extent]
    if before is not None and before.incoming is not None:
        extents.append(before.incoming.extent)
        incoming = join(before.incoming, incoming)
    # all operands have rows of one width, so that the known extent of one holds for all
    incoming = incoming.but(extent=next((extent for extent in extents if extent is not None), None))
    shown = ", ".join(text(part, 40) for part in parts if part not in olds)
    store = fn.stores[key] = begun_store(fn, state, key, "cat", found, incoming, loop, shown)
    store.incoming, store.ended = incoming, True
    store.selected = all(is_selection(unmoved(part)) for part in olds)


def _carried(fn: FunctionState, place: Source, old: V, index: str) -> tuple[bool, LoopState | None]:
    """Whether the old value is the previous round's, and the loop of those rounds (None for rounds of calls).
    ``index``: the variable that picks the member."""
    loop = carried_by(fn, place, old.src, index)
    if loop is not None:
        return True, loop
    if isinstance(place, Path) and place in old.src:
        return True, fn.innermost(())
    return False, None


#: methods that return the same tensor on another device, in another type or without its graph
PASSED = frozenset({
    "cpu", "cuda", "to", "detach", "clone", "contiguous", "float", "half", "double", "long", "type",
})  # fmt: skip


def is_same(part: ir.Expr, place: str) -> bool:
    """Whether an expression is the place itself, or a selection of its rows by an index tensor."""
    return place in places_of(part)


def places_of(part: ir.Expr) -> tuple[str, ...]:
    """The places that an expression is, or selects rows of."""
    part = unmoved(part)
    found = (text(part, 200),) if is_member(part) else ()
    if is_selection(part):
        part = part.value
    return (*found, text(part, 200)) if isinstance(part, ir.Name | ir.Attr) else found


def is_member(part: ir.Expr) -> TypeGuard[ir.Subscript]:
    """Whether an expression may be a member of a dictionary: ``rows["query"]``, ``rows[name]``."""
    if not isinstance(part, ir.Subscript):
        return False
    return isinstance(part.index, ir.Name) or (isinstance(part.index, ir.Const) and isinstance(part.index.value, str))


def is_selection(part: ir.Expr) -> TypeGuard[ir.Subscript]:
    """Whether an expression may select rows (``rows[kept]``): a new tensor, so that the old rows are copied anyway."""
    return isinstance(part, ir.Subscript) and isinstance(part.index, ir.Name)


def unmoved(part: ir.Expr) -> ir.Expr:
    """The expression without copies to another device or type: ``x`` of ``x.cpu()``."""
    return under_calls(part, PASSED)
