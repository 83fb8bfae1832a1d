"""The statements and expressions on a line of a file, and the functions around them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from memlint.analysis.domain.events import Site
from memlint.analysis.index.definitions import functions_of
from memlint.analysis.index.program import Function
from memlint.analysis.syntax.syntax import parts_of, walk_statements
from memlint.finding import Span
from memlint.ir import nodes as ir

if TYPE_CHECKING:
    from memlint.analysis.driver.run import Analysis

#: the expressions that are shown
_SHOWN = (ir.Name, ir.Attr, ir.Call, ir.Subscript)


class Found(NamedTuple):
    """A statement on the line, the function around it, and its expressions there with their spans."""

    statement: ir.Stmt
    function: Function
    span: Span
    parts: tuple[tuple[ir.Expr, Span], ...]


def statements_on(analysis: Analysis, path: str, line: int, column: int | None) -> list[Found]:
    """The statements whose header covers a line (and a column)."""
    module = analysis.analyser.program.module(path)
    functions_of(module)
    found: list[Found] = []
    for unit in range(len(module.index.units)):
        for statement in walk_statements(module.lowered(unit).body):
            site = Site(path, unit, statement.at)
            span = analysis.span(site)
            if span.line <= line <= span.end_line and not isinstance(statement, ir.Scope):
                parts = tuple(_parts(analysis, site, statement, line, column))
                found.append(Found(statement, analysis.function_at(site), span, parts))
    found = _innermost(found)
    if column is not None:
        found = [one for one in found if _covers(one.span, line, column)] or found
    return found


def _innermost(found: list[Found]) -> list[Found]:
    """Without the statements whose header contains another one of them (that of ``if x: f(x)`` ends at the colon)."""
    return [
        one
        for one in found
        if not any(
            other is not one
            and (one.span.line, one.span.column) <= (other.span.line, other.span.column)
            and (other.span.end_line, other.span.end_column) <= (one.span.end_line, one.span.end_column)
            and other.span != one.span
            for other in found
        )
    ]


def _parts(
    analysis: Analysis, site: Site, statement: ir.Stmt, line: int, column: int | None
) -> Iterator[tuple[ir.Expr, Span]]:
    seen: set[str] = set()
    for part in parts_of(statement):
        if not isinstance(part, _SHOWN):
            continue
        span = analysis.extent(Site(site.path, site.unit, part.at))
        if not span.line <= line <= span.end_line or (column is not None and not _covers(span, line, column)):
            continue
        key = repr(span)
        if key not in seen:
            seen.add(key)
            yield part, span


def _covers(span: Span, line: int, column: int) -> bool:
    return (span.line, span.column) <= (line, column) < (span.end_line, span.end_column)
