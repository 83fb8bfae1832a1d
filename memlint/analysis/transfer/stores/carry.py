"""Carries: places that are rebuilt from their own previous value, how, and which values are added."""

from __future__ import annotations

from memlint.analysis.domain.state import OFF, State
from memlint.analysis.domain.summary.effects import Spot
from memlint.analysis.domain.summary.function_state import FunctionState
from memlint.analysis.domain.values import CONTAINER, NONE, TENSORS, TREE, UNKNOWN, Path, V
from memlint.analysis.index.function import Function
from memlint.analysis.syntax.bindings import mentions
from memlint.analysis.syntax.expression_text import text
from memlint.analysis.syntax.rebuilding import Member, is_old_member, members_anew, reads_others_only, summed_members
from memlint.analysis.syntax.syntax import dotted, walk_expression, walk_statements
from memlint.analysis.transfer.heap import current_position
from memlint.analysis.transfer.held_values import tensors_within
from memlint.analysis.transfer.narrowing import narrow
from memlint.analysis.transfer.stores import growing, loop_updates
from memlint.analysis.transfer.stores.class_places import picking_name, place_of
from memlint.analysis.transfer.stores.collected import given_as
from memlint.analysis.transfer.stores.emptied_places import parts_among
from memlint.analysis.transfer.stores.stores import note_carry, note_store, own_sources
from memlint.analysis.transfer.stores.written_keys import counted_by
from memlint.ir import nodes as ir

_AVERAGES = frozenset({"lerp", "lerp_", "ema", "ema_inplace", "moving_average", "running_average"})


#: the tag of the carry of a tensor that is written part by part
PART = "part"


def note_augmented(fn: FunctionState, state: State, statement: ir.AugAssign, old: V, new: V, value: V) -> None:
    """Record the carry of ``place op= value``."""
    if not new.src or not new.may_be(TENSORS | UNKNOWN):
        return
    found = place_of(fn, state, statement.target)
    if found is None or not own_sources(fn, found.place) & fn.graphs.closure(value.src | old.src):
        return
    how = "add" if statement.op in ("+", "-") else "update"
    index = picking_name(statement.target)
    note_carry(fn, state, how, found, value, new, statement.at, text(statement.value), index=index)


def note_assigned(
    fn: FunctionState, state: State, statement: ir.Assign | ir.AnnAssign, target: ir.Expr, value: V
) -> None:
    """Record the carry of ``place = expression``, where the expression reads the place or a value that was computed
    from it."""
    if statement.value is None or growing.note_concatenation(fn, state, statement, target):
        return
    loop_updates.note_update(fn, state, statement, target, value)
    note_built(fn, state, statement.at, statement.value, target, value)


def note_built(fn: FunctionState, state: State, at: int, expr: ir.Expr, target: ir.Expr, value: V) -> None:
    """Record the carry of an expression's value into a place, by assignment or by a method:
    ``sums.update(a=sums["a"] + x)``."""
    if value.may_be(CONTAINER) and value.objs:
        if _is_window(expr, text(target, 200)) or _rebuilt(fn, state, at, expr, target, value):
            return
        summed = None if isinstance(target, ir.Name) else summed_members(expr, text(target, 200))
        if summed is not None:
            _sums(fn, state, at, expr, summed, target, value)
            return
        members = members_anew(expr, text(target, 200))
        if members is not None and isinstance(target, ir.Name | ir.Attr):
            _by_members(fn, state, at, members, expr, target)
            return
        if isinstance(target, ir.Name):
            value = tensors_within(fn, state, value)
    other, before = _other_side(expr, target), state
    if other is not None and isinstance(expr, ir.IfExp):
        before = fn.fork(state)
        narrow(fn, before, expr.test, other is expr.body)
        value, expr = fn.interpreter.evaluate(fn, state, other), other
    if not value.may_be(TENSORS | UNKNOWN) or _is_empty(before, target):
        return
    if not fn.loops and isinstance(target, ir.Name) and target.id in fn.function.locals:
        return  # outside of loops, a local variable carries nothing
    shown = text(target, 200)
    direct = mentions(expr, shown) or _gets(expr, target)
    found = place_of(fn, state, target)
    if found is None:
        return
    own = own_sources(fn, found.place)
    if not direct:
        # the mark is that of an object from the same allocation site in an earlier round, unless it is computed from
        # the place under another name: ``old = self.mean``
        value = value.but(src=value.src - own if value.src <= own else value.src - (own - {found.place}))
    reached = fn.graphs.closure(value.src)
    if not direct and not own & reached:
        return
    how, incoming = classify(fn, state, expr, shown, value)
    if how == "cat":
        return
    if not value.src or not own & reached:
        return
    rest = incoming.but(src=incoming.src - own) if incoming.src & own else incoming
    summed = summed_members(expr, shown)
    added = text(_addend(expr, shown)) if summed is None else _added_text(expr, summed, target)
    note_carry(fn, state, how, found, value, rest, at, added, index=picking_name(target))


def _is_empty(state: State, target: ir.Expr) -> bool:
    """Whether a variable holds None until this assignment, as a test has found (``if state is None: state = new``), so
    that no round computes its value from another one."""
    held = state.env.get(target.id) if isinstance(target, ir.Name) else None
    return held is not None and held.is_only(NONE)


def _other_side(expr: ir.Expr, target: ir.Expr) -> ir.Expr | None:
    """The branch that computes the new value in ``x = start if first else x``, where the other branch is the place
    itself; None for another expression."""
    if not isinstance(expr, ir.IfExp) or not isinstance(target, ir.Name | ir.Attr | ir.Subscript):
        return None
    shown = text(target, 200)
    sides = [side for side in (expr.body, expr.orelse) if not _is_place(side, shown)]
    return sides[0] if len(sides) == 1 else None


def _is_place(expr: ir.Expr, shown: str) -> bool:
    """Whether an expression reads the place with this text."""
    return isinstance(expr, ir.Name | ir.Attr | ir.Subscript) and text(expr, 200) == shown


def _by_members(
    fn: FunctionState, state: State, at: int, members: list[Member], expr: ir.Expr, target: ir.Name | ir.Attr
) -> None:
    """Record the carry of a container that is rebuilt member by member, where a member's new value is computed from
    its old one."""
    found, shown = place_of(fn, state, target), text(target, 200)
    if found is None or (not fn.loops and shown in fn.function.locals):
        return
    place, own = found.place, own_sources(fn, found.place)
    for key, item in members:
        if reads_others_only(item, shown, key):
            continue
        value = tensors_within(fn, state, fn.interpreter.evaluate(fn, state, item))
        if not mentions(item, shown):
            value = value.but(src=value.src - own)  # as in `note_built`
        if isinstance(place, Path):
            value = value.but(src=value.src - parts_among(place, value.src))
            value = value.but(src=value.src | own) if parts_among(place, fn.graphs.closure(value.src)) else value
        pair = fn.operands.get(item.at, ()) if isinstance(item, ir.Binary) else ()
        if any(not one.src and not one.may_be(TENSORS | UNKNOWN) for one in pair):
            continue  # ``info.get("n", 0) + 1``: a count, whatever else the container holds
        if not value.src or not value.may_be(TENSORS | UNKNOWN) or not own & fn.graphs.closure(value.src):
            continue
        member = text(target) if key is None else f"{shown}[{key}]"
        how, added = classify(fn, state, item, member, value)
        if how == "cat":
            if isinstance(target, ir.Attr):
                continue  # a cache of keys and values
            how, added = "call", value  # of members, only whole tensors are known to grow
        rest = added.but(src=added.src - own)
        note_carry(fn, state, how, found._replace(text=member), value, rest, at, text(_addend(item, member)))


def _sums(fn: FunctionState, state: State, at: int, expr: ir.Expr, summed: ir.Expr, target: ir.Expr, value: V) -> None:
    """Record the carry of ``self.sums = [s + x for s, x in zip(self.sums, losses)]``: each new member adds to an old
    one."""
    found = place_of(fn, state, target)
    if found is None:
        return
    spot = found._replace(place=found.place.then("[]")) if isinstance(found.place, Path) else found
    held = tensors_within(fn, state, value)
    how, added = classify(fn, state, expr, text(target, 200), held)
    if held.src and added.src and added.may_be(TENSORS | UNKNOWN):
        rest = added.but(src=added.src - own_sources(fn, spot.place))
        made = note_carry(fn, state, how, spot, held, rest, at, _added_text(expr, summed, target))
        if made is not None:
            made.objs = value.objs


def _added_text(expr: ir.Expr, summed: ir.Expr, target: ir.Expr) -> str:
    """The text of what is added to each member."""
    if not isinstance(summed, ir.Binary) or not isinstance(expr, ir.Comprehension):
        return text(expr)
    return text(summed.right if is_old_member(summed.left, expr, text(target, 200)) else summed.left)


def _gets(expr: ir.Expr, target: ir.Expr) -> bool:
    """Whether the expression reads the assigned member by ``get``: ``sums[name] = sums.get(name, 0.0) + value``."""
    if not isinstance(target, ir.Subscript):
        return False
    shown = text(target, 200)
    return any(_is_get(part, shown) for part in walk_expression(expr))


def _is_get(expr: ir.Expr, shown: str) -> bool:
    if not isinstance(expr, ir.Call) or not isinstance(expr.func, ir.Attr) or expr.func.name != "get" or not expr.args:
        return False
    return f"{text(expr.func.value, 200)}[{text(expr.args[0], 200)}]" == shown


def _is_window(expr: ir.Expr, shown: str) -> bool:
    """Whether a list keeps only its last members: ``losses = losses[-99:] + [loss]``, ``losses = (losses +
    [loss])[-100:]``."""
    return any(
        isinstance(part, ir.Subscript)
        and isinstance(part.index, ir.Slice)
        and part.index.lower is not None
        and mentions(part.value, shown)
        for part in walk_expression(expr)
    )


def _rebuilt(fn: FunctionState, state: State, at: int, expr: ir.Expr, target: ir.Expr, value: V) -> bool:
    """Record what a container retains that grows by being rebuilt; whether it does: ``xs = xs + [x]``, ``xs = (*xs,
    x)``, ``sums[name] = sums.get(name, []) + [x]``."""
    added = _added(fn, expr, text(target, 200))
    found = place_of(fn, state, target) if added else None
    if found is None:
        return bool(added)
    for item in added:
        inner = tensors_within(fn, state, fn.interpreter.evaluate(fn, state, item))
        made = note_store(fn, state, "append", found, inner, at, text(item))
        if made is not None:
            made.objs = value.objs
    return bool(added)


def _added(fn: FunctionState, expr: ir.Expr, shown: str) -> list[ir.Expr]:
    """The members that an expression adds to those of the place with this text; empty where it does not rebuild it."""

    def is_old(part: ir.Expr) -> bool:
        return _is_place(part, shown) or _is_get(part, shown)

    if isinstance(expr, ir.Binary) and expr.op in ("+", "|") and is_old(expr.left):
        if isinstance(expr.right, ir.Display):
            return list(expr.right.elements)
        return _new_keys(fn, expr.right) if isinstance(expr.right, ir.DictDisplay) else []
    if isinstance(expr, ir.Display) and any(isinstance(one, ir.Starred) and is_old(one.value) for one in expr.elements):
        return [one for one in expr.elements if not (isinstance(one, ir.Starred) and is_old(one.value))]
    spreads = isinstance(expr, ir.DictDisplay) and any(
        key is None and is_old(one) for key, one in zip(expr.keys, expr.values, strict=True)
    )
    return _new_keys(fn, expr) if spreads and isinstance(expr, ir.DictDisplay) else []


def _new_keys(fn: FunctionState, expr: ir.DictDisplay) -> list[ir.Expr]:
    """The values of a display whose keys are new in each iteration."""
    return [one for key, one in zip(expr.keys, expr.values, strict=True) if key is not None and counted_by(fn, key)]


def note_written(fn: FunctionState, state: State, base: V, value: V, target: ir.Subscript) -> None:
    """Record the carry of ``self.buffer[i:j] = value``, by which the buffer takes over the value's graph."""
    if not value.src or not value.may_be(TENSORS | UNKNOWN) or state.grad == OFF or isinstance(target.index, ir.Const):
        return
    for path in sorted(base.syms):
        known = base.may_be(TENSORS) or (len(path.steps) == 1 and fn.analyser.is_buffer(fn.function, path))
        if known and path.steps and _brings_more(fn, path, value):
            src = base.src | value.src | {path}  # the buffer may be written part by part, so its former graph stays
            state.sym[path] = V(TENSORS & ~TREE, src, bare=True, syms=base.syms, size=base.size, device=base.device)
            how, spot = _how_written(fn, state, target, value), Spot(path, "buffer", text(target.value))
            note_carry(fn, state, how, spot, state.sym[path], value, current_position(fn), spot.text)


def _brings_more(fn: FunctionState, place: Path, value: V) -> bool:
    """Whether the written value depends on more than the buffer itself: ``queue[n:] = queue[:-n].clone()`` only
    shifts it."""
    reached = fn.graphs.closure(value.src) - own_sources(fn, place)
    nodes = (fn.graphs.nodes.get(item) for item in reached)
    others = any(isinstance(item, Path) and not item.is_in(place) for item in reached)
    return others or any(node is not None and (node.model or node.definite or node.unknown) for node in nodes)


def _how_written(fn: FunctionState, state: State, target: ir.Subscript, value: V) -> str:
    """How a buffer is written: "average" for ``self.mean[:] = self.mean * 0.9 + mean * 0.1`` outside of loops, else
    "update"."""
    statement = fn.statement
    if not isinstance(statement, ir.Assign) or any(loop.counts for loop in fn.loops):
        return "update"
    how, _ = classify(fn, state, statement.value, text(target.value, 200), value)
    return "average" if how == "average" else "update"


def note_part_written(fn: FunctionState, state: State, name: str, value: V, target: ir.Subscript) -> None:
    """Record the carry of ``scores[:, i] = value`` in a loop, where the tensor takes over the graph of each round."""
    loop = fn.innermost(())
    if loop is None or name in loop.bound or state.grad == OFF:
        return
    if isinstance(target.index, ir.Const) and not state.env[name].is_only(TENSORS & ~TREE):
        return  # a member of a list or dictionary, which is overwritten in each round
    filled = state.env[name] = state.env[name].marked(("prev", loop.id, name))
    shown = text(fn.statement.value if isinstance(fn.statement, ir.Assign) else target)
    spot = Spot(("var", name), "local", name)
    note_carry(fn, state, "update", spot, filled, value, current_position(fn), shown, tag=PART)


def classify(fn: FunctionState, state: State, expr: ir.Expr, shown: str, value: V) -> tuple[str, V]:
    """How the expression rebuilds the place ("add", "average", "cat", "update" or "call"), and the value that is
    added to the old one."""
    summed = summed_members(expr, shown)
    if summed is not None and isinstance(expr, ir.Comprehension):
        pair = fn.operands.get(summed.at) if isinstance(summed, ir.Binary) else None
        if pair is None or not isinstance(summed, ir.Binary):
            return "add", value
        return "add", tensors_within(fn, state, pair[1 if is_old_member(summed.left, expr, shown) else 0])
    inner = _rebuilding(expr, shown)
    if isinstance(inner, ir.Binary) and inner.op in ("+", "-"):
        for position, side in enumerate((inner.left, inner.right)):
            if _is_place(side, shown) or _is_get(side, shown):
                pair = fn.operands.get(inner.at)
                return "add", value if pair is None else tensors_within(fn, state, pair[1 - position])
        if _scales(inner, shown):
            others = [position for position, side in enumerate((inner.left, inner.right)) if not mentions(side, shown)]
            pair = fn.operands.get(inner.at) if len(others) == 1 else None
            return "average", value if pair is None else tensors_within(fn, state, pair[others[0]])
        if _leftmost(inner, shown):
            return "add", value
        return "update", value
    if isinstance(inner, ir.Binary):
        return "update", value
    if isinstance(inner, ir.Call):
        name = dotted(inner.func).rsplit(".", 1)[-1]
        if name in growing.CATS:
            return "cat", value
        if name in _AVERAGES:
            return "average", value
        if name in ("add", "sub"):
            return "add", value
        return "average" if _is_averaged_by(fn, inner, shown) else "call", value
    return "call", value


def _scales(expr: ir.Expr, shown: str) -> bool:
    """Whether an expression multiplies the place, as an average does: ``(1 - rate) * mean + rate * value``."""
    return any(
        isinstance(part, ir.Binary) and part.op == "*" and mentions(part, shown) for part in walk_expression(expr)
    )


def _is_averaged_by(fn: FunctionState, call: ir.Call, shown: str) -> bool:
    """Whether a function of the project is given the place, and whatever it makes of it anew is an average."""
    kind, callee = fn.analyser.program.find_expression(fn.function.module, call.func, fn.function)
    if kind != "function" or not isinstance(callee, Function):
        return False
    for name in given_as(callee, call, lambda arg: _is_place(arg, shown)):
        statements = list(walk_statements(callee.body, into_definitions=False))
        anew = [
            one.value
            for one in statements
            if isinstance(one, ir.Assign) and any(_is_place(target, name) for target in one.targets)
        ]
        given = [one.value for one in statements if isinstance(one, ir.Return) and one.value is not None]
        parts = [part for one in given for part in (one.elements if isinstance(one, ir.Display) else (one,))]
        made = [one for one in anew or parts if mentions(one, name)]
        if made and all(isinstance(one, ir.Binary) and one.op in ("+", "-") and _scales(one, name) for one in made):
            return True
    return False


def _rebuilding(expr: ir.Expr, shown: str) -> ir.Expr:
    """The part of an expression that computes the new value from the old one: the sum in ``loss if total is None else
    (total + loss).float()``."""
    if isinstance(expr, ir.IfExp):
        sides = [side for side in (expr.body, expr.orelse) if mentions(side, shown)]
        expr = sides[0] if len(sides) == 1 else expr
    while (
        isinstance(expr, ir.Call)
        and isinstance(expr.func, ir.Attr)
        and not expr.args
        and not isinstance(expr.func.value, ir.Name)
    ):
        expr = expr.func.value
    return expr


def _addend(expr: ir.Expr, shown: str) -> ir.Expr:
    """What is added to the place in ``total + loss``; the expression itself where it is no such sum."""
    inner = _rebuilding(expr, shown)
    if isinstance(inner, ir.Binary) and inner.op in ("+", "-"):
        for side, other in ((inner.left, inner.right), (inner.right, inner.left)):
            if _is_place(side, shown) or _is_get(side, shown):
                return other
    return expr


def _leftmost(expr: ir.Binary, shown: str) -> bool:
    """Whether the place is the leftmost operand of a chain of sums, or the right operand of one of them."""
    left: ir.Expr = expr
    while isinstance(left, ir.Binary) and left.op in ("+", "-"):
        if isinstance(left.right, ir.Name | ir.Attr) and text(left.right, 200) == shown:
            return True
        left = left.left
    return _is_place(left, shown)
