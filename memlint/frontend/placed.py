"""Where what is reported on is in its file."""

from __future__ import annotations

from memlint.frontend.host_places import host_places
from memlint.frontend.problem import SyntaxProblem
from memlint.frontend.span_table import SpanTable
from memlint.frontend.unit_text import UnitText


def placed(unit: UnitText, count: int) -> SpanTable:
    """The spans of a unit of ``count`` ordinals, by the host's ``ast``; by libcst, which is not imported before, where
    that does not tell. Where the two number a definition's records each in its way, all are at its first line."""
    table = host_places(unit)
    if table is not None and len(table) == count:
        return table
    from memlint.frontend.spans import spans

    try:
        table = spans(unit)
        if len(table) == count:
            return table
    except SyntaxProblem:
        pass
    return SpanTable(unit.start_line, [0], [(0, 0)] * count, {})
