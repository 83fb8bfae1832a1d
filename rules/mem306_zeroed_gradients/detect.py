"""Gradients that are filled with zeros although they could be released before the next forward."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from memlint.sdk import Confidence, lazy_pattern
from memlint.sdk.project import Analyser, Summary, argument, names_model
from memlint.sdk.syntax import bodies, calls, calls_backward, dotted, identifiers, ir, last_name, text, walk_statements
from memlint.sdk.values import PARAMETERS

from .rule import ZeroedGradients

#: code that records the addresses of gradients, which then must not change
_FIXED = lazy_pattern(
    r"CUDAGraph|cuda\.graph\(|make_graphed_callables|capture_begin|register_post_accumulate|flat_grad|grad\.data_ptr"
)
#: names without which a function clears no gradients
_LET_GO = frozenset({"zero_grad", "grad"})


class _Zeroing(NamedTuple):
    """``at``: the site of a finding; ``flag``: the False of ``set_to_none=False``."""

    at: int
    text: str
    owner: str
    flag: ir.Expr | None


def detect(analyser: Analyser, summary: Summary) -> Iterator[ZeroedGradients]:
    """The statements of one function that fill gradients with zeros before a forward."""
    names = summary.function.names
    if "backward" not in names or names.isdisjoint(_LET_GO):
        return
    attributes = identifiers(summary.function.body)[1]
    if not attributes & _LET_GO or not calls_backward(summary.function.body):
        return
    if _FIXED.search(summary.module.text):
        return
    for found, behind, around in _zeroings(summary.function.body, (), ()):
        if found.flag is not None and analyser.methods_named("zero_grad", summary.function):
            continue  # a wrapper of the project may need it
        certainty = _before_forward(summary, behind, around)
        if certainty is None:
            continue
        yield ZeroedGradients(
            site=summary.site(found.at),
            function=summary.function.qual,
            certainty=certainty,
            text=found.text,
            owner=found.owner,
            flag=summary.site(found.flag.at) if found.flag is not None else None,
        )


def _zeroings(
    body: tuple[ir.Stmt, ...], after: tuple[ir.Stmt, ...], around: tuple[ir.Stmt, ...]
) -> Iterator[tuple[_Zeroing, tuple[ir.Stmt, ...], tuple[ir.Stmt, ...]]]:
    """Each statement that fills gradients with zeros, the statements after it up to the end of the iteration
    (``after``: those after the body), and the body of the innermost loop around it; without the latter two for a
    conditional statement."""
    for position, statement in enumerate(body):
        found = _by_flag(statement) or _by_hand(statement)
        behind = (*body[position + 1 :], *after)
        if found is not None:
            yield found, behind, around
        elif isinstance(statement, ir.For | ir.While):
            yield from _zeroings(statement.body, (), statement.body)
        elif isinstance(statement, ir.With):
            yield from _zeroings(statement.body, behind, around)
        elif not isinstance(statement, ir.FunctionDef | ir.ClassDef):
            for block in bodies(statement):
                yield from _zeroings(block, (), ())


def _by_flag(statement: ir.Stmt) -> _Zeroing | None:
    """``optimizer.zero_grad(set_to_none=False)``"""
    call = statement.value if isinstance(statement, ir.ExprStmt) else None
    if not isinstance(call, ir.Call) or not isinstance(call.func, ir.Attr) or call.func.name != "zero_grad":
        return None
    flag = argument(call, 0, "set_to_none")
    if not isinstance(flag, ir.Const) or flag.value is not False:
        return None
    return _Zeroing(call.at, text(call), text(call.func.value), flag)


def _by_hand(statement: ir.Stmt) -> _Zeroing | None:
    """``for p in model.parameters(): p.grad.zero_()``"""
    if not isinstance(statement, ir.For) or statement.orelse:
        return None
    listed = statement.iter
    if not isinstance(listed, ir.Call) or not isinstance(listed.func, ir.Attr) or listed.func.name not in PARAMETERS:
        return None
    target = statement.target
    if listed.func.name == "named_parameters":
        target = target.elements[-1] if isinstance(target, ir.Display) and len(target.elements) == 2 else target
    if not isinstance(target, ir.Name):
        return None
    gradient = f"{target.id}.grad"
    body = statement.body
    while len(body) == 1 and isinstance(body[0], ir.If) and not body[0].orelse and _has(body[0].test, gradient):
        body = body[0].body
    kinds = [_what(one, gradient) for one in body]
    if "zero" not in kinds or not all(kinds):
        return None
    shown = next(_shown(one) for one, kind in zip(body, kinds, strict=True) if kind == "zero")
    return _Zeroing(statement.at, shown, text(listed.func.value), None)


def _has(test: ir.Expr, gradient: str) -> bool:
    """Whether a test is for a gradient (or a conjunction of such tests): ``p.grad is not None``, ``p.grad``,
    ``p.requires_grad``."""
    if isinstance(test, ir.BoolOp) and test.op == "and":
        return _has(test.left, gradient) and _has(test.right, gradient)
    if isinstance(test, ir.Compare):
        right = test.rights[0]
        return (
            test.ops in (("is not",), ("!=",))
            and isinstance(right, ir.Const)
            and right.kind == "None"
            and dotted(test.left) == gradient
        )
    return dotted(test) in (gradient, gradient.replace(".grad", ".requires_grad"))


def _what(statement: ir.Stmt, gradient: str) -> str:
    """What a statement does to a gradient: "zero", "detach", or "" for anything else."""
    if isinstance(statement, ir.Assign) and len(statement.targets) == 1:
        made = statement.value
        zeros = isinstance(made, ir.Call) and last_name(made.func) == "zeros_like"
        return "zero" if zeros and dotted(statement.targets[0]) in (gradient, f"{gradient}.data") else ""
    call = statement.value if isinstance(statement, ir.ExprStmt) else None
    if not isinstance(call, ir.Call) or not isinstance(call.func, ir.Attr):
        return ""
    if dotted(call.func.value) not in (gradient, f"{gradient}.data"):
        return ""
    if call.func.name == "fill_":
        value = argument(call, 0, "value")
        return "zero" if isinstance(value, ir.Const) and value.value == 0 else ""
    return {"zero_": "zero", "detach_": "detach"}.get(call.func.name, "")


def _shown(statement: ir.Stmt) -> str:
    if isinstance(statement, ir.Assign):
        return f"{text(statement.targets[0])} = {text(statement.value)}"
    return text(statement.value) if isinstance(statement, ir.ExprStmt) else ""


def _before_forward(summary: Summary, behind: tuple[ir.Stmt, ...], around: tuple[ir.Stmt, ...]) -> Confidence | None:
    """The confidence that a model runs between the zeroing and the next backward, after it or in the next iteration;
    None if none does."""
    runs: Confidence | None = None
    for statement in behind:
        backward = _backward(statement)
        if backward is not None:
            # accumulated gradients exist in all iterations but the first
            return runs if isinstance(statement, ir.For | ir.While) else runs or _runs(summary, (statement,), backward)
        runs = runs or _runs(summary, (statement,))
        if runs and _accumulates(behind):
            return None
    # after the backward of its iteration: the next one begins with a forward
    for statement in around:
        if any(statement is one for one in behind):
            break
        if _backward(statement) is not None:
            return runs or (None if _accumulates(around) else _runs(summary, around))
    return None


def _runs(summary: Summary, body: tuple[ir.Stmt, ...], before: int | None = None) -> Confidence | None:
    """The confidence that a model runs in a body, before an ordinal, by the analysis or by its name; None if none
    does."""
    held = [call for call in calls(body) if call.args and (before is None or call.at < before)]
    if any(call.at in summary.notes.models for call in held):
        return "high"
    return "medium" if any(names_model(text(call.func)) for call in held) else None


def _accumulates(body: tuple[ir.Stmt, ...]) -> bool:
    """Whether a backward runs in an inner loop."""
    return any(_backward(one) is not None for one in walk_statements(body) if isinstance(one, ir.For | ir.While))


def _backward(statement: ir.Stmt) -> int | None:
    """The ordinal of the first backward in a statement; None for none."""
    found = (
        call.func.at for call in calls((statement,)) if isinstance(call.func, ir.Attr) and call.func.name == "backward"
    )
    return min(found, default=None)
