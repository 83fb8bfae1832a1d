"""Why an update in place might not give what the copy gave."""

from __future__ import annotations

from memlint.flow.frame import Frame
from memlint.flow.hotloops import Candidate, is_place
from memlint.flow.mends.bindings import binders
from memlint.flow.syntax import mentions, text, walk_expression
from memlint.ir import nodes as ir


def doubt(frame: Frame, one: Candidate) -> str:
    """Why the form in place may not give the same: only a floating tensor that was made here takes every number."""
    if "…" in one.spine:
        return "it is too long to be shown whole"
    made = frame.notes.made
    starts = one.old.store - {one.statement.value.at}
    target = text(one.target)
    if not isinstance(one.target, ir.Name) or not starts or not all(at in made and made[at][1] for at in starts):
        return f"`{target}` may hold integers, or share its memory"
    if any(made[at][0].endswith("_like") for at in starts):
        return f"`{target}` has the type of what it is like, which may hold integers"
    begun = [value for value in binders(frame.function, one.target.id) or () if not mentions(value, target)]
    if not all(map(_is_plainly_made, begun)):
        return f"`{target}` may share its memory, or ask for gradients"
    if sum(is_place(part, target) for part in walk_expression(one.statement.value)) > 1:
        return f"`{target}` is also what changes it, and a view of it would see the change"
    operands = (
        part
        for part in walk_expression(one.statement.value)
        if not mentions(part, target) and not _is_callee(one, part)
    )
    if not all(isinstance(part, ir.Const) and part.kind in ("int", "float") for part in operands):
        return f"what is added to `{target}` may be larger than it"
    return ""


def _is_plainly_made(value: ir.Expr) -> bool:
    """A factory's call, or a plain copy of what one gives; or an update."""
    while isinstance(value, ir.Call) and isinstance(value.func, ir.Attr) and isinstance(value.func.value, ir.Call):
        if value.func.name not in ("half", "float", "double", "bfloat16", "to", "cuda", "cpu", "clone", "contiguous"):
            return False
        value = value.func.value
    return True


def _is_callee(one: Candidate, part: ir.Expr) -> bool:
    calls = (call for call in walk_expression(one.statement.value) if isinstance(call, ir.Call))
    return any(part is inner for call in calls for inner in walk_expression(call.func))
