"""The place of an assignment's target, and its kind."""

from __future__ import annotations

from memlint.analysis.domain.state import State
from memlint.analysis.domain.summary.effects import Spot
from memlint.analysis.domain.summary.function_state import FunctionState
from memlint.analysis.domain.values import CONTAINER, Path, ordered
from memlint.analysis.syntax.expression_text import text
from memlint.analysis.syntax.syntax import is_member, is_name
from memlint.analysis.transfer.stores.class_places import class_places
from memlint.analysis.transfer.stores.stores import kind_of
from memlint.ir import nodes as ir


def place_of(fn: FunctionState, state: State, target: ir.Expr) -> Spot | None:
    """The place of a target; None where it is unknown."""
    if is_name(target, "_"):
        return None
    shown = text(target)
    if isinstance(target, ir.Name):
        if target.id in fn.function.locals:
            return Spot(("var", target.id), "local", shown)
        path = _foreign(fn, target.id)
        return Spot(path, kind_of(path), shown)
    if isinstance(target, ir.Attr | ir.Subscript):
        base = fn.interpreter.evaluate(fn, state, target.value)
        if isinstance(target, ir.Subscript) and not base.may_be(CONTAINER) and not is_member(target):
            return None
        step = "." + target.name if isinstance(target, ir.Attr) else _step(fn, state, target)
        for path in sorted(base.syms):
            inner = path.then(step)
            return Spot(inner, kind_of(inner), shown)
        if isinstance(target, ir.Attr):
            for path in ordered(class_places(fn.analyser, base, target.name)):
                return Spot(path, kind_of(path), shown)
        for key in ordered(base.objs):
            return Spot((key, step), "local", shown)
    return None


def picking_name(target: ir.Expr) -> str:
    """The variable that picks the member in ``place[name]``; "" where none does."""
    return target.index.id if isinstance(target, ir.Subscript) and isinstance(target.index, ir.Name) else ""


def _foreign(fn: FunctionState, name: str) -> Path:
    around = fn.function.enclosing
    return Path(f"c:{name}") if around is not None and name in around.locals else Path(f"g:{fn.module.key}:{name}")


def _step(fn: FunctionState, state: State, target: ir.Subscript) -> str:
    index = fn.interpreter.evaluate(fn, state, target.index)
    return f"[{index.const}]" if isinstance(index.const, str) else "[]"
