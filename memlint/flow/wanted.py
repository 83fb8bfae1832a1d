"""Who wants the gradients of a model that runs: its own function, a caller, a backward that reaches what it gives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memlint.flow.frame import Frame, ModelRun
from memlint.flow.heap import deep
from memlint.flow.spent import blindly_reached
from memlint.flow.syntax import calls_backward, dotted, expressions, walk_expression, walk_statements
from memlint.flow.told import MAX_CALLERS_UP
from memlint.flow.values import CONTAINER, TENSORS, UNKNOWN, Source
from memlint.ir import nodes as ir

if TYPE_CHECKING:
    from memlint.flow.analyser import Analyser

#: the gradients are wanted while the model runs; whether the graph is, afterwards, is another question
ENABLED = "grad mode is switched on"
REQUIRES = "an input requires grad"
REACHED = "a backward() reaches it"


def wanted_by(analyser: Analyser, frame: Frame, run: ModelRun) -> str:
    """Why the gradients of a run are wanted, in words; "" where nothing says so."""
    why = asked_for(frame)
    if why:
        return why
    deeper = run.origin
    while deeper is not None:  # what runs in a callee of a callee is wanted there, or on the way
        inner, origin = deeper
        why = asked_for(inner) or _reached(analyser, inner, {origin.node, *origin.value.src}, MAX_CALLERS_UP)
        if why:
            return why
        deeper = origin.origin
    for caller, record in analyser.facts.calls_of(frame.function):
        given = any(value.may_be(TENSORS | CONTAINER | UNKNOWN) for value in record.args.values())
        if given and caller is not frame and (why := asked_for(caller)) == REQUIRES:
            return why  # it may be what this function is given
    marks = {run.node, *run.value.src}
    return _reached(analyser, frame, marks, 0)


def _reached(analyser: Analyser, frame: Frame, marks: set[Source], depth: int) -> str:
    """Why a backward reaches these graphs: here, through an attribute, or in a caller that gets them returned."""
    if any(marks & reached for reached, *_ in frame.backwards):
        return REACHED
    if blindly_reached(frame, marks):
        return "a backward() of unknown origin is called"
    own = f"p:{frame.function.params[0].name}" if frame.function.takes_self and frame.function.params else ""
    stored = frame.exit.sym.items() if frame.exit is not None else ()
    if any(
        path.steps
        and path.root == own
        and marks & frame.graphs.closure(value.src)
        and analyser.facts.in_backward(path.steps)
        for path, value in stored
    ):
        return "a backward() of another method reaches it"
    if depth >= MAX_CALLERS_UP or not marks & frame.notes.returned:
        return ""
    for caller, record in analyser.facts.calls_of(frame.function):
        if caller is frame:
            continue
        if caller.notes.gradients:
            return "autograd.grad is called"
        inner = set(deep(caller, caller.exit, record.result).src) if caller.exit is not None else set(record.result.src)
        why = _reached(analyser, caller, inner, depth + 1)
        if why:
            return why
    return ""


def asked_for(frame: Frame) -> str:
    """Gradients are asked for in this function: autograd.grad, requires_grad, saliency, an optimizer step."""
    if frame.notes.gradients:
        return "autograd.grad is called"
    for statement in walk_statements(frame.function.body):
        if isinstance(statement, ir.Assign):
            for target in statement.targets:
                if isinstance(target, ir.Attr) and target.name == "requires_grad" and _true(statement.value):
                    return REQUIRES
        for expr in expressions(statement):
            for part in walk_expression(expr):
                if not isinstance(part, ir.Call):
                    continue
                name = dotted(part.func).rsplit(".", 1)[-1] if not isinstance(part.func, ir.Attr) else part.func.name
                if name == "zero_grad" and not frame.backwards and not calls_backward(frame.function.body):
                    return "gradients are cleared, so some code that is called makes them"
                if name in ("requires_grad_", "enable_grad") and not (part.args and _false(part.args[0])):
                    return "gradients are asked for"
                if name == "set_grad_enabled" and part.args and _true(part.args[0]):
                    return ENABLED
                if any(word.name == "volatile" and _true(word.value) for word in part.keywords):
                    return "its inputs are volatile: in the PyTorch that it is written for, nothing is recorded"
                if any(word.name == "requires_grad" and _true(word.value) for word in part.keywords):
                    return REQUIRES
    return ""


def _true(expr: ir.Expr) -> bool:
    return isinstance(expr, ir.Const) and expr.value is True


def _false(expr: ir.Expr) -> bool:
    return isinstance(expr, ir.Const) and expr.value is False
