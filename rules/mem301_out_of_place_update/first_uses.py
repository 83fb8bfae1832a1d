"""Variables that a body reads before it binds them."""

from __future__ import annotations

from collections.abc import Iterator

from memlint.sdk.syntax import expressions, ir, kept, walk_expression, walk_statements
from memlint.sdk.values import LoopState


def carried_in(loop: LoopState, name: str) -> bool:
    """Whether an iteration reads the value that the previous one left in the variable: the first use in the body is a
    read."""
    return name in _read_first(loop.body)


@kept
def _read_first(body: tuple[ir.Stmt, ...]) -> frozenset[str]:
    """The names that a body reads before it assigns them."""
    return frozenset(_first_uses(body)[0])


#: names whose first use is a read, and those whose first use is a write
_Uses = tuple[set[str], set[str]]


def _first_uses(body: tuple[ir.Stmt, ...]) -> _Uses:
    reads: set[str] = set()
    writes: set[str] = set()
    for statement in body:
        now_read, now_written = _first_uses_of(statement)
        if not reads and not writes:
            reads, writes = now_read, now_written  # an ``elif`` chain is not copied at each link
            continue
        reads |= now_read - writes
        writes |= now_written - reads
    return reads, writes


def _first_uses_of(statement: ir.Stmt) -> _Uses:
    reads = {name for expr in _read_expressions(statement) for name in _names(expr)}
    writes: set[str] = set()
    inner: _Uses | None = None
    if isinstance(statement, ir.Assign | ir.AnnAssign | ir.For):
        targets = statement.targets if isinstance(statement, ir.Assign) else (statement.target,)
        parts = (part for target in targets for part in _bound_parts(target))
        writes = {part.id for part in parts if isinstance(part, ir.Name)} - reads
    if isinstance(statement, ir.With):
        inner = _first_uses(statement.body)
    elif isinstance(statement, ir.If):
        inner = _either(_first_uses(statement.body), _first_uses(statement.orelse))
    elif isinstance(statement, ir.For | ir.While | ir.Try):
        within = walk_statements((statement,), into_definitions=False)
        inner = {name for one in within for expr in _read_expressions(one) for name in _names(expr)}, set()
    if inner is None:
        return reads, writes
    inner[0].difference_update(writes)
    inner[0].update(reads)
    inner[1].difference_update(reads)
    inner[1].update(writes)
    return inner


def _either(one: _Uses, other: _Uses) -> _Uses:
    """The join of two branches: a read on either, a write on both."""
    more, fewer = (one, other) if len(one[0]) >= len(other[0]) else (other, one)
    more[0].update(fewer[0])
    return more[0], one[1] & other[1]


def _names(expr: ir.Expr) -> Iterator[str]:
    return (part.id for part in walk_expression(expr) if isinstance(part, ir.Name))


def _bound_parts(target: ir.Expr) -> Iterator[ir.Expr]:
    if isinstance(target, ir.Display):
        for item in target.elements:
            yield from _bound_parts(item)
    else:
        yield target


def _read_expressions(statement: ir.Stmt) -> Iterator[ir.Expr]:
    if isinstance(statement, ir.Assign):
        yield statement.value
        yield from (target for target in statement.targets if not isinstance(target, ir.Name | ir.Display))
    elif isinstance(statement, ir.AnnAssign):
        if statement.value is not None:
            yield statement.value
    elif isinstance(statement, ir.For):
        yield statement.iter
    else:
        yield from expressions(statement)
