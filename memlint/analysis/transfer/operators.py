"""Augmented assignments to tensors and numbers, to containers, and to objects whose class defines the operator."""

from __future__ import annotations

from memlint.analysis.domain.state import State
from memlint.analysis.domain.summary.function_state import FunctionState
from memlint.analysis.domain.values import CONTAINER, INSTANCE, TENSORS, V
from memlint.analysis.syntax.expression_text import text
from memlint.analysis.transfer import containers
from memlint.analysis.transfer.assignment import assign
from memlint.analysis.transfer.evaluate import apply_binary, evaluate
from memlint.analysis.transfer.heap import elements_of
from memlint.analysis.transfer.signatures import only_method
from memlint.analysis.transfer.stores import carry
from memlint.analysis.transfer.stores.stores import store_value
from memlint.ir import nodes as ir

_IN_PLACE = {"+": "__iadd__", "-": "__isub__", "*": "__imul__", "|": "__ior__"}


def augmented(fn: FunctionState, state: State, statement: ir.AugAssign) -> State:
    """The state after ``place op= value``."""
    old = evaluate(fn, state, statement.target)
    new = evaluate(fn, state, statement.value)
    fn.notes.note_kinds(statement.value, new)
    made = _in_place(fn, state, statement, old, new)
    if made is not None:
        assign(fn, state, statement.target, made, None)
        return state
    if old.may_be(CONTAINER) and statement.op == "+" and not old.may_be(TENSORS):
        store_value(
            fn,
            state,
            old,
            "append",
            elements_of(fn, state, new),
            statement.at,
            text(statement.value),
            text(statement.target),
        )
        return state
    if statement.op == "|" and old.is_only(CONTAINER) and isinstance(statement.value, ir.DictDisplay):
        containers.put_display(fn, state, statement.at, old, statement.target, statement.value, new)
        return state
    fake = ir.Binary(statement.at, statement.op, statement.target, statement.value)
    value = apply_binary(fn, state, fake, old, new)
    carry.note_augmented(fn, state, statement, old, new, value)
    assign(fn, state, statement.target, value, None)
    return state


def _in_place(fn: FunctionState, state: State, statement: ir.AugAssign, old: V, new: V) -> V | None:
    """The result of the in-place operator method (``__iadd__``) of the object's class; None where its class defines
    none."""
    name = _IN_PLACE.get(statement.op)
    if name is None or not old.kinds or old.kinds & ~INSTANCE:
        return None
    method = only_method(fn, old, name)
    if method is None:
        return None
    func = ir.Attr(statement.at, statement.target, name)
    shown = ir.Call(statement.at, func, (statement.value,), ())
    return fn.interpreter.call_function(fn, state, method, [old, new], {}, statement.at, shown)
