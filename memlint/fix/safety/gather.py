"""Rewriting of a tensor that grows by cat in a loop as a list that is concatenated once after it."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator

from memlint.analysis.domain.events import Gather
from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.syntax.bindings import assigned_names
from memlint.analysis.syntax.expression_text import text
from memlint.analysis.syntax.memo import kept
from memlint.analysis.syntax.syntax import (
    bodies,
    expressions,
    is_name,
    statement_at,
    walk_expression,
    walk_statements,
    way_to,
)
from memlint.ir import nodes as ir

#: calls that give the same result for one part at a time as for all at once
_CATS = frozenset({"cat", "concat", "concatenate", "hstack", "vstack"})

Block = tuple[ir.Stmt, ...]


def gather_of(summary: Summary, at: int) -> Gather | None:
    """The rewriting of ``x = torch.cat([x, part])`` as an append; None if the loop reads ``x`` elsewhere."""
    function = summary.function
    statement = statement_at(function.body, at)
    if not isinstance(statement, ir.Assign) or len(statement.targets) != 1:
        return None
    target, call = statement.targets[0], statement.value
    if not isinstance(target, ir.Name) or not isinstance(call, ir.Call) or not isinstance(call.func, ir.Attr):
        return None
    given = call.args[0] if call.args else None
    if call.func.name not in _CATS or not isinstance(given, ir.Display) or len(given.elements) != 2:
        return None
    old, part = given.elements
    if not isinstance(old, ir.Name) or old.id != target.id or isinstance(part, ir.Starred):
        return None
    around = _loop_after_start(function.body, statement, target.id)
    name = f"{target.id}_parts"
    if around is None or name in _all_names(function.body):
        return None
    options = (call.func, *call.args[1:], *(word.value for word in call.keywords))
    if any(word.name is None for word in call.keywords) or any(_changes(around, option) for option in options):
        return None
    rest = [text(arg, 200) for arg in call.args[1:]]
    rest += [f"{word.name}={text(word.value, 200)}" for word in call.keywords]
    return Gather(
        loop=summary.site(around.at),
        statement=summary.site(statement.at),
        part=summary.site(part.at),
        name=name,
        start=f"{name} = [{target.id}]",
        end=f"{target.id} = {text(call.func, 200)}({', '.join((name, *rest))})",
        doubt=f"the list keeps `{text(part, 40)}` itself, so a later in-place change of it changes the result",
    )


def _loop_after_start(body: Block, statement: ir.Stmt, name: str) -> ir.Stmt | None:
    """The statement around the growth that follows the variable's initialisation in the same block, if only the growth
    in it mentions the variable; None otherwise."""
    for block, position in way_to(body, statement.at):
        outer = block[position]
        if outer is statement:
            return None
        places = _places(block).get(name, [])
        last = bisect_left(places, position) - 1
        if last < 0:
            continue
        before = block[places[last]]
        if isinstance(before, ir.Assign) and any(is_name(target, name) for target in before.targets):
            none = isinstance(before.value, ir.Const | ir.Display)
            alone = _mentions_in(outer)[name] == (name in _names(statement))
            return _loop_in(outer, statement) if alone and not none else None
        return None
    return None


@kept
def _places(block: Block) -> dict[str, list[int]]:
    """The positions of a block's statements by the names that they mention."""
    found: dict[str, list[int]] = {}
    for place, statement in enumerate(block):
        for name in _mentions_in(statement):
            found.setdefault(name, []).append(place)
    return found


def _loop_in(outer: ir.Stmt, statement: ir.Stmt) -> ir.Stmt | None:
    """The outermost loop inside ``outer`` around a statement; code around it may not be entered at all."""
    while not isinstance(outer, ir.For | ir.While):
        inside = (
            inner
            for block in bodies(outer)
            for inner in block
            if any(part is statement for part in walk_statements((inner,)))
        )
        found = next(inside, None)
        if found is None or found is statement:
            return None
        outer = found
    return outer


def _changes(loop: ir.Stmt, option: ir.Expr) -> bool:
    """Whether an expression may have another value, or none, after the loop."""
    if any(isinstance(part, ir.Call | ir.Attr | ir.Subscript | ir.Lambda) for part in walk_expression(option)):
        plain = isinstance(option, ir.Attr) and isinstance(option.value, ir.Name)
        if not plain:
            return True
    read = {part.id for part in walk_expression(option) if isinstance(part, ir.Name)}
    return bool(read & assigned_names((loop,))[0])


@kept
def _names(statement: ir.Stmt) -> frozenset[str]:
    """The names that a statement itself mentions."""
    if isinstance(statement, ir.Scope):
        return frozenset(statement.names)
    parts = (part for expr in expressions(statement) for part in _parts(expr))
    return frozenset(part.id for part in parts if isinstance(part, ir.Name))


@kept
def _mentions_in(statement: ir.Stmt) -> Counter[str]:
    """For each name, how many of the statement and its inner statements mention it."""
    return Counter(name for inner in walk_statements((statement,)) for name in _names(inner))


def _parts(expr: ir.Expr) -> Iterator[ir.Expr]:
    for part in walk_expression(expr):
        yield part
        if isinstance(part, ir.Lambda):
            yield from _parts(part.body)


@kept
def _all_names(body: Block) -> frozenset[str]:
    return frozenset(name for statement in walk_statements(body) for name in _names(statement))
