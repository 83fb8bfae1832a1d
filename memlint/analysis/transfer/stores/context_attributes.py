"""Assignments to attributes of the context of an autograd function."""

from __future__ import annotations

from typing import NamedTuple

from memlint.analysis.domain.summary.function_state import FunctionState
from memlint.analysis.domain.values import V, join
from memlint.analysis.syntax.bindings import assigned_names
from memlint.analysis.transfer.narrowing import tells_tensors
from memlint.ir import nodes as ir

#: attributes that autograd itself reads
OWN = frozenset(
    {"to_save", "saved_tensors", "saved_variables", "dirty_tensors", "non_differentiable", "needs_input_grad"}
)
#: parameters of helpers that receive the context
_CONTEXTS = frozenset({"ctx", "context"})
FORWARD = "forward"
SETUP = "setup_context"


def note_context_attribute(
    fn: FunctionState, target: ir.Attr, value: V, statement: ir.Assign | ir.AnnAssign | None
) -> None:
    """Record an assignment to an attribute, if its object is a context."""
    function = fn.function
    if not function.params or not isinstance(target.value, ir.Name) or target.value.id != function.params[0].name:
        return
    if (function.name not in (FORWARD, SETUP) or function.cls is None) and target.value.id not in _CONTEXTS:
        return
    known = fn.notes.on_context.get(target.at)
    expr, names = _source(target, statement)
    if isinstance(expr, ir.Name) and _is_proved_no_tensor(fn, expr.id):
        return
    fn.notes.on_context[target.at] = Kept(target, expr, names, join(known.given, value) if known else value)


def _is_proved_no_tensor(fn: FunctionState, name: str) -> bool:
    """Whether a variable, which the function does not rebind, is no tensor here: the else branch of ``if
    torch.is_tensor(x)``."""
    return name not in assigned_names(fn.function.body)[0] and any(
        isinstance(test, ir.Unary) and test.op == "not" and tells_tensors(test.operand, frozenset({name}))
        for test in fn.tests
    )


def _source(target: ir.Attr, statement: ir.Assign | ir.AnnAssign | None) -> tuple[ir.Expr | None, frozenset[str]]:
    """The expression that the target is assigned, and the variables that the same statement assigns it to."""
    if statement is None or statement.value is None:
        return None, frozenset()
    targets = statement.targets if isinstance(statement, ir.Assign) else (statement.target,)
    if target in targets:
        return statement.value, frozenset(item.id for item in targets if isinstance(item, ir.Name))
    for item in targets:
        if isinstance(item, ir.Display) and isinstance(statement.value, ir.Display) and target in item.elements:
            parts = (*item.elements, *statement.value.elements)
            if len(item.elements) * 2 == len(parts) and not any(isinstance(part, ir.Starred) for part in parts):
                return statement.value.elements[item.elements.index(target)], frozenset()
    return None, frozenset()


class Kept(NamedTuple):
    """An assignment ``ctx.name = value``. ``value``: its expression, None where a tuple is unpacked; ``names``: the
    variables that it is assigned to as well; ``given``: its abstract value."""

    target: ir.Attr
    value: ir.Expr | None
    names: frozenset[str]
    given: V
