"""Positions in a notebook as users see them: the cell, and the line in it."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from memlint.finding import Edit, Finding, Fix, Span, Statement, TraceStep
from memlint.project import Source


def in_cells(finding: Finding, sources: Mapping[str, Source]) -> Finding:
    """A finding, its trace and its fixes with positions in notebooks' cells in place of those in modules. Both ends of
    a span count from the cell in which it begins."""
    if not any(sources[path].cells for path in _paths(finding) if path in sources):
        return finding
    cell, span = _placed(
        sources.get(finding.path), Span(finding.line, finding.column, finding.end_line, finding.end_column)
    )
    return msgspec.structs.replace(
        finding,
        cell=cell,
        line=span.line,
        column=span.column,
        end_line=span.end_line,
        end_column=span.end_column,
        statement=_statement(finding, span),
        trace=tuple(_step(step, sources) for step in finding.trace),
        fix=None if finding.fix is None else _fix(finding.fix, sources),
        alternatives=tuple(_fix(fix, sources) for fix in finding.alternatives),
    )


def _paths(finding: Finding) -> set[str]:
    fixes = (*((finding.fix,) if finding.fix is not None else ()), *finding.alternatives)
    return {finding.path, *(step.path for step in finding.trace), *(edit.path for fix in fixes for edit in fix.edits)}


def _placed(source: Source | None, span: Span) -> tuple[int | None, Span]:
    cell = None if source is None else source.cell(span.line)
    if cell is None:
        return None, span
    above, left = cell.line - 1, cell.indent
    return cell.number, Span(span.line - above, span.column + left, span.end_line - above, span.end_column + left)


def _statement(finding: Finding, span: Span) -> Statement | None:
    if finding.statement is None:
        return None
    above = finding.line - span.line
    one = finding.statement
    return msgspec.structs.replace(one, line=one.line - above, end_line=one.end_line - above)


def _step(step: TraceStep, sources: Mapping[str, Source]) -> TraceStep:
    cell, span = _placed(sources.get(step.path), Span(step.line, step.column, step.line, step.column))
    return msgspec.structs.replace(step, cell=cell, line=span.line, column=span.column)


def _fix(fix: Fix, sources: Mapping[str, Source]) -> Fix:
    return msgspec.structs.replace(fix, edits=tuple(_edit(edit, sources) for edit in fix.edits))


def _edit(edit: Edit, sources: Mapping[str, Source]) -> Edit:
    cell, span = _placed(sources.get(edit.path), edit.span)
    return msgspec.structs.replace(edit, cell=cell, span=span)
