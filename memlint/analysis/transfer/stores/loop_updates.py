"""Tensors without a graph that a loop replaces by an updated copy, where an in-place update would do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from memlint import knowledge
from memlint.analysis.domain.state import OFF, State
from memlint.analysis.domain.summary.effects import LoopState
from memlint.analysis.domain.summary.function_state import FunctionState
from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.domain.values import DATA, ELSEWHERE, NONE, SCALAR, TENSORS, Sources, V, join
from memlint.analysis.syntax.bindings import mentions
from memlint.analysis.syntax.expression_text import text
from memlint.analysis.syntax.syntax import is_member, last_name
from memlint.analysis.transfer.modules.optimizer_parameters import is_setting
from memlint.ir import nodes as ir

_OPERATORS = {"+": "add_", "-": "sub_", "*": "mul_", "/": "div_"}
#: element-wise operations that keep shape and dtype; the in-place method has the same name and an underscore
_ELEMENTWISE = frozenset({
    "abs", "add", "addcdiv", "addcmul", "ceil", "clamp", "clamp_max", "clamp_min", "clip", "cos", "div", "exp", "expm1",
    "floor", "lerp", "log", "log1p", "masked_fill", "mul", "neg", "pow", "reciprocal", "relu", "round", "rsqrt",
    "sigmoid", "sin", "sqrt", "square", "sub", "tanh", "trunc",
})  # fmt: skip


@dataclass
class LoopUpdate:
    """An out-of-place update in a loop. ``alone``: no pass over the loop found another reference to the old value's
    storage; ``freed``: the graphs that a backward has freed by then on every path."""

    statement: ir.Assign
    target: ir.Name | ir.Attr | ir.Subscript
    old: V
    value: V
    grad: int
    loop: LoopState | None
    spine: str
    alone: bool
    freed: Sources
    #: computing what is added needs another temporary tensor
    crowded: bool = False


def note_update(
    fn: FunctionState, state: State, statement: ir.Assign | ir.AnnAssign, target: ir.Expr, value: V
) -> None:
    """Record ``target = expression of target`` as a candidate for an in-place update."""
    if not isinstance(statement, ir.Assign) or len(statement.targets) != 1 or statement.targets[0] is not target:
        return
    candidate = _candidate(fn, state, statement, target, value)
    if isinstance(target, ir.Name) and target.id in fn.notes.updated:
        # after the aliases of the old tensor were looked for: an alias would see it change
        _renew(fn, state, statement.value.at, value)
    if candidate is not None:
        if isinstance(target, ir.Name):
            fn.notes.updated.add(target.id)
        fn.notes.rebound[statement.at] = candidate


def _candidate(fn: FunctionState, state: State, statement: ir.Assign, target: ir.Expr, value: V) -> LoopUpdate | None:
    """The update of a target by an expression of it, joined with earlier passes; None where it has no in-place form."""
    if not isinstance(statement.value, ir.Binary | ir.Call):
        return None
    if not isinstance(target, ir.Name | ir.Attr) and not is_member(target):
        return None
    if isinstance(target, ir.Name) and not fn.loops:
        return None
    place = text(target, 200)
    form = inplace(fn, state, statement.value, place)
    if not form or mentions(statement.value, place + ".grad"):
        return None  # replacing a leaf resets its gradient, updating it in place does not

    old = fn.interpreter.evaluate(fn, state, target)
    alone = _alone(fn, state, target, old)
    before = fn.notes.rebound.get(statement.at)
    if before is not None:
        alone = alone and before.alone
        old, value = join(before.old, old), join(before.value, value)
    grad = state.grad | (before.grad if before else 0)
    freed, around = frozenset(state.freed_must), fn.innermost(())
    full = needs_temporary(fn, statement.value, place)
    return LoopUpdate(statement, target, old, value, grad, around, form, alone, freed, full)


# -------------------------------------------------------------------------------------- the form in place


def inplace(fn: FunctionState, state: State, expr: ir.Expr, place: str) -> str:
    """The expression as an in-place update of ``place``; "" where no in-place update is equivalent."""
    if isinstance(expr, ir.Call):
        return _call_in_place(fn, state, expr, place)
    steps: list[tuple[str, ir.Expr]] = []
    at: ir.Expr = expr
    while isinstance(at, ir.Binary) and at.op in _OPERATORS:
        if is_place(at.right, place) and at.op in ("+", "*") and not mentions(at.left, place):
            steps.append((at.op, at.left))
            at = at.right
            break
        if (
            isinstance(at.right, ir.Binary)
            and at.op == "+"
            and not mentions(at.left, place)
            and mentions(at.right, place)
        ):
            steps.append((at.op, at.left))
            at = at.right
            continue
        steps.append((at.op, at.right))
        at = at.left
    if not is_place(at, place) or not steps or len(steps) > 4:
        return ""
    steps.reverse()
    if any(mentions(operand, place) for _, operand in steps[1:]):
        return ""  # a later operand reads the value from before the first step
    if len(steps) == 1:
        op, operand = steps[0]
        return f"{place} {op}= {text(operand, 40)}"
    return place + "".join(f".{_OPERATORS[op]}({text(operand, 30)})" for op, operand in steps)


def is_place(expr: ir.Expr, place: str) -> bool:
    return (isinstance(expr, ir.Name | ir.Attr) or is_member(expr)) and text(expr, 200) == place


def _call_in_place(fn: FunctionState, state: State, expr: ir.Call, place: str) -> str:
    func = expr.func
    name = last_name(func)
    if name not in _ELEMENTWISE or any(word.name == "out" for word in expr.keywords):
        return ""
    if isinstance(func, ir.Attr) and is_place(func.value, place):
        return f"{place}.{name}_({_short(expr.args, expr)})"
    if not expr.args or not is_place(expr.args[0], place):
        return ""
    named = {f"torch.{name}", f"torch.nn.functional.{name}"}
    if not any(ref.kind == "ext" and ref.name in named for ref in fn.interpreter.evaluate(fn, state, func).refs):
        return ""
    return f"{place}.{name}_({_short(expr.args[1:], expr)})"


def _short(args: tuple[ir.Expr, ...], expr: ir.Call) -> str:
    words = [f"{word.name}={text(word.value, 20)}" for word in expr.keywords if word.name]
    return ", ".join([*(text(arg, 20) for arg in args), *words])


# -------------------------------------------------------------------------------------- aliases


def _alone(fn: FunctionState, state: State, target: ir.Expr, old: V) -> bool:
    """Whether the state has no other reference to the old value's storage."""
    if not isinstance(target, ir.Name):
        return True  # an attribute is judged over the whole class
    if not old.store or old.syms or old.objs or ELSEWHERE in old.store:
        return False
    if old.store & fn.notes.lent:
        return False
    stale = fn.notes.stale
    for name, value in _held(state):
        if name == target.id:
            continue
        shared = value.store & old.store
        if shared and not all(id(value) in stale.get(item, ()) for item in shared):
            return False
    return True


def _held(state: State) -> Iterator[tuple[str, V]]:
    """All values that the state holds, each with the name of its variable; "" for other places."""
    yield from state.env.items()
    for value in state.sym.values():
        yield "", value
    for obj in state.heap.values():
        if obj.elem.store:
            yield "", obj.elem
        for value in obj.fields.values():
            yield "", value


def _renew(fn: FunctionState, state: State, at: int, value: V) -> None:
    """A tensor was just made at ``at``: other references to this allocation site are to tensors of earlier
    iterations."""
    if at not in value.store:
        return
    lent = fn.notes.lent
    fn.notes.lent = lent - {at}
    earlier = {id(held): held for _, held in _held(state) if at in held.store}
    fn.notes.stale[at] = earlier


def note_escaped_storage(fn: FunctionState, value: V) -> None:
    """The value escapes to code that cannot be followed, which may keep it."""
    if value.store:
        fn.notes.lent = fn.notes.lent | value.store


def needs_temporary(fn: FunctionState, update: ir.Expr, place: str) -> bool:
    """Whether an operand of the update is a chain of operations itself, so that another temporary tensor exists at
    the peak."""
    if not isinstance(update, ir.Binary):
        return False
    added = update.right if is_place(update.left, place) else update.left if is_place(update.right, place) else None
    return (
        isinstance(added, ir.Binary)
        and makes(fn, added)
        and any(isinstance(part, ir.Binary) and makes(fn, part) for part in (added.left, added.right))
    )


def makes(summary: Summary, part: ir.Binary) -> bool:
    """Whether an operation may make a tensor: one of its operands is no number."""
    pair = summary.operands.get(part.at, ())
    return not pair or any(
        not value.is_only(DATA | NONE) and value.size != SCALAR and not is_setting(value) for value in pair
    )


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
