"""What ``__getitem__`` takes of the attributes of a data set, sample by sample."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from memlint.flow.program import Class, Function, Program
from memlint.flow.syntax import expressions, text, walk_expression, walk_statements
from memlint.ir import nodes as ir

_MAX_CALLS = 3
#: what is taken: a sample's entry, a field of it, or one of the first two parts
Taken = Literal["entry", "field", "pair"]


def read_by_sample(
    program: Program, cls: Class, method: Function, index: frozenset[str] = frozenset(), depth: int = 0
) -> Iterator[tuple[str, Taken]]:
    """The attributes that ``__getitem__``, or a method that it hands the index, takes a sample's entry of, and what
    of that. ``index``: the names of the index, the first parameter's unless told."""
    if len(method.params) < 2:
        return
    own, derived = method.params[0].name, set(index) or {method.params[1].name}
    entries: dict[str, str] = {}
    for statement in walk_statements(method.body, into_definitions=False):
        for part in (part for whole in expressions(statement) for part in walk_expression(whole)):
            entry = _entry(part, own, derived)
            if entry:
                yield entry, "entry"
            if isinstance(part, ir.Subscript | ir.Attr):
                taken = _entry(part.value, own, derived) or entries.get(text(part.value, 200), "")
                if taken and _is_field(part):
                    yield taken, "field"
                elif taken and isinstance(part, ir.Subscript) and isinstance(part.index, ir.Const):
                    yield taken, "pair"
            if isinstance(part, ir.Call) and depth < _MAX_CALLS:
                yield from _read_in_call(program, cls, part, own, derived, depth)
        if not isinstance(statement, ir.Assign):
            continue
        taken = _entry(statement.value, own, derived) or entries.get(text(statement.value, 200), "")
        for target in statement.targets:
            if taken and isinstance(target, ir.Display):
                yield taken, "field" if len(target.elements) > 2 else "pair"
            if isinstance(target, ir.Name):
                entries.pop(target.id, None)
                if taken:
                    entries[target.id] = taken
                if taken or _counts(statement.value, derived):
                    derived.add(target.id)


def _read_in_call(
    program: Program, cls: Class, call: ir.Call, own: str, derived: set[str], depth: int
) -> Iterator[tuple[str, Taken]]:
    """What a method of the same object reads by the index that it is given."""
    if not isinstance(call.func, ir.Attr) or text(call.func.value) != own:
        return
    method = program.method(cls, call.func.name)
    if method is None or not method.takes_self:
        return
    names = [param.name for param in method.params[1:]]
    given = {
        name for name, arg in zip(names, call.args, strict=False) if isinstance(arg, ir.Name) and arg.id in derived
    }
    if given:
        yield from read_by_sample(program, cls, method, frozenset(given), depth + 1)


def _entry(expr: ir.Expr, own: str, derived: set[str]) -> str:
    """x of ``self.x[index]``, ``self.x[self.keys[index]]``, ``self.x["annotations"][index]``."""
    if not isinstance(expr, ir.Subscript):
        return ""
    held = expr.value
    if isinstance(held, ir.Subscript) and isinstance(held.index, ir.Const) and held.index.kind == "str":
        held = held.value
    if not isinstance(held, ir.Attr) or text(held.value) != own:
        return ""
    names = {part.id for part in walk_expression(expr.index) if isinstance(part, ir.Name)}
    return held.name if names & derived else ""


def _counts(value: ir.Expr, derived: set[str]) -> bool:
    """Whether it is computed of the index, and of nothing that is read by it."""
    parts = list(walk_expression(value))
    if any(isinstance(part, ir.Attr) and part.name in ("iloc", "loc") for part in parts):
        return False
    return any(isinstance(part, ir.Name) and part.id in derived for part in parts) and not any(
        isinstance(part, ir.Subscript) for part in parts
    )


def _is_field(part: ir.Subscript | ir.Attr) -> bool:
    """``entry["caption"]``, ``entry[2]``, ``entry.get``"""
    if isinstance(part, ir.Attr):
        return part.name in ("get", "items", "keys", "values")
    index = part.index
    if not isinstance(index, ir.Const):
        return False
    return index.kind == "str" or (isinstance(index.value, int) and index.value > 1)
