"""Loops whose peak memory an in-place update does not lower, as another part of them needs as much."""

from __future__ import annotations

from memlint.sdk.project import Summary, leads_to_model, names_model
from memlint.sdk.syntax import calls, ir, last_name, mentions, text, walk_statements
from memlint.sdk.values import OFF, LoopUpdate, is_place, makes

#: functions that create a new tensor from their argument, which they hold meanwhile
_COMPUTES = frozenset(
    {
        "addmm",
        "bmm",
        "cat",
        "conv1d",
        "conv2d",
        "conv3d",
        "cumsum",
        "einsum",
        "flip",
        "gather",
        "linear",
        "matmul",
        "mm",
        "mv",
        "normalize",
        "roll",
        "softmax",
        "sort",
        "stack",
        "where",
    }
)

#: how many levels of calls are searched for a model run
_DEPTH = 1


def needed_anyway(summary: Summary, one: LoopUpdate) -> bool:
    """Whether the loop holds as many tensors of this size at another moment: while a model computes with the old one,
    while another statement replaces it by a computed one, or while the operand is created."""
    if one.crowded:
        return True
    if one.loop is None or not isinstance(one.target, ir.Name):
        return False
    name = one.target.id
    # in a training loop, the graphs may be freed at the update, and their size is unknown
    beside = one.grad == OFF and (_is_input(summary, one, name) or _runs_layers(summary, one))
    return beside or _made_anew(summary, one, name) or _computes_in_two(summary, one, name)


def _runs_layers(summary: Summary, one: LoopUpdate) -> bool:
    """Whether a method that the loop calls runs a model, whose layers hold more at once than their result."""
    assert one.loop is not None
    ats = {call.at for call in calls(one.loop.body)}
    called = (record.callee for record in summary.calls.values() if record.at in ats)
    return any(leads_to_model(summary.analyser, key, _DEPTH) for key in called)


def _computes_in_two(summary: Summary, one: LoopUpdate, name: str) -> bool:
    """Whether another statement holds two products beside the tensor: ``delta = a * x - b * d`` in the loop that
    replaces ``x``."""
    assert one.loop is not None
    return any(
        isinstance(statement, ir.Assign)
        and not any(is_place(target, name) for target in statement.targets)
        and isinstance(statement.value, ir.Binary)
        and mentions(statement.value, name)
        and all(
            isinstance(part, ir.Binary) and makes(summary, part)
            for part in (statement.value.left, statement.value.right)
        )
        for statement in walk_statements(one.loop.body, into_definitions=False)
    )


def _made_anew(summary: Summary, one: LoopUpdate, name: str) -> bool:
    assert one.loop is not None
    return any(
        isinstance(statement, ir.Assign)
        and statement.at not in summary.notes.rebound
        and any(is_place(target, name) for target in statement.targets)
        and mentions(statement.value, name)
        and _computes(statement.value)
        for statement in walk_statements(one.loop.body, into_definitions=False)
    )


def _computes(value: ir.Expr) -> bool:
    if isinstance(value, ir.Binary):
        return value.op == "@"
    if not isinstance(value, ir.Call):
        return False
    own = isinstance(value.func, ir.Name) or text(value.func).startswith("self.")
    return own or last_name(value.func) in _COMPUTES


def _is_input(summary: Summary, one: LoopUpdate, name: str) -> bool:
    assert one.loop is not None
    return any(
        (call.at in summary.notes.models or names_model(text(call.func)))
        and any(mentions(given, name) for given in call.passed)
        for call in calls(one.loop.body)
    )
