"""The spans of a unit's records in its file."""

from __future__ import annotations

from memlint.frontend.host_spans import host_spans
from memlint.frontend.problem import SyntaxProblem
from memlint.frontend.span_table import SpanTable
from memlint.frontend.unit_text import UnitText


def spans_of(unit: UnitText, count: int) -> SpanTable:
    """The spans of a unit of ``count`` ordinals, by the host's ``ast``, else by libcst, which is imported only then. If
    neither has ``count`` records, every span is empty, at the unit's first line."""
    table = host_spans(unit)
    if table is not None and len(table) == count:
        return table
    from memlint.frontend.libcst_spans import libcst_spans

    try:
        table = libcst_spans(unit)
        if len(table) == count:
            return table
    except SyntaxProblem:
        pass
    return SpanTable(unit.start_line, [0], [(0, 0)] * count, {})
