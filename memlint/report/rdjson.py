"""reviewdog's diagnostics, with safe fixes as suggestions."""

from __future__ import annotations

import msgspec

from memlint.finding import Edit, Finding, Result, Severity, TraceStep, shown_place
from memlint.json_text import indented
from memlint.report.facts import details, in_cell, rule_of, shown
from memlint.report.lines import Lines
from memlint.report.setting import HOME, Setting

_SEVERITIES: dict[Severity, str] = {"error": "ERROR", "warning": "WARNING", "note": "INFO"}


class _Position(msgspec.Struct, frozen=True):
    """``column``: from 1, in bytes of UTF-8."""

    line: int
    column: int


class _Range(msgspec.Struct, frozen=True):
    start: _Position
    end: _Position


class _Location(msgspec.Struct, frozen=True, omit_defaults=True):
    path: str
    range: _Range | None = None


class _Code(msgspec.Struct, frozen=True):
    value: str
    url: str


class _Suggestion(msgspec.Struct, frozen=True):
    range: _Range
    text: str


class _Related(msgspec.Struct, frozen=True):
    message: str
    location: _Location


class _Diagnostic(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    message: str
    location: _Location
    severity: str
    code: _Code | None = None
    suggestions: tuple[_Suggestion, ...] = ()
    related_locations: tuple[_Related, ...] = ()
    original_output: str = ""


class _Source(msgspec.Struct, frozen=True):
    name: str = "memlint"
    url: str = HOME


class _Report(msgspec.Struct, frozen=True):
    source: _Source
    diagnostics: list[_Diagnostic]


def render(result: Result, lines: Lines, setting: Setting) -> str:
    """One object with all diagnostics: the findings, and the files that could not be analysed."""
    rows = [_diagnostic(one, lines, setting) for one in shown(result)]
    rows += [
        _Diagnostic(
            message=f"this file could not be analysed: {failure.reason}",
            location=_Location(failure.path),
            severity="ERROR",
        )
        for failure in result.failures
    ]
    return indented(_Report(_Source(), rows))


def _diagnostic(one: Finding, lines: Lines, setting: Setting) -> _Diagnostic:
    where = _range(one, (one.line, one.column), (one.end_line, one.end_column), lines)
    suggestion = _suggestion(one, lines)
    # reviewdog itself takes paths from the working directory
    said = details(one, Setting())
    return _Diagnostic(
        message=f"{in_cell(one)}{said}",
        location=_Location(one.path, where),
        severity=_SEVERITIES[one.severity],
        code=_Code(one.code, setting.help_uri(one.code)),
        suggestions=() if suggestion is None else (suggestion,),
        related_locations=tuple(
            _Related(f"{in_cell(step)}{step.message}", _Location(step.path, _range(step, at, at, lines)))
            for step in one.trace
            for at in ((step.line, step.column),)
        ),
        original_output=f"{shown_place(one)}: {one.severity} {rule_of(one)} {one.message}",
    )


def _suggestion(one: Finding, lines: Lines) -> _Suggestion | None:
    """A safe fix as one replacement, since each suggestion is applied alone. None if there is no safe fix, or if it
    edits other files."""
    fix = one.fix
    if fix is None or fix.safety != "safe" or not fix.edits or any(_is_elsewhere(edit, one) for edit in fix.edits):
        return None
    edits = sorted(fix.edits, key=lambda edit: (_start(edit), _end(edit)))
    begin, end = _start(edits[0]), max(map(_end, edits))
    text, at = "", begin
    for edit in edits:
        between = _between(one.path, at, _start(edit), lines)
        if between is None:
            return None
        text, at = f"{text}{between}{edit.content}", _end(edit)
    return _Suggestion(_range(one, begin, end, lines), text)


def _is_elsewhere(edit: Edit, finding: Finding) -> bool:
    """Whether an edit is in another file, or in a cell of a notebook."""
    return edit.path != finding.path or edit.cell is not None


def _start(edit: Edit) -> tuple[int, int]:
    return edit.span.line, edit.span.column


def _end(edit: Edit) -> tuple[int, int]:
    return edit.span.end_line, edit.span.end_column


def _between(path: str, start: tuple[int, int], end: tuple[int, int], lines: Lines) -> str | None:
    """The source between two places; None if it is unknown."""
    rows = [lines.get(path, line) for line in range(start[0], end[0] + 1)]
    if start > end or None in rows:
        return None
    text = "\n".join(row for row in rows if row is not None)
    last = len(text) - len(rows[-1] or "") + end[1] - 1
    return text[start[1] - 1 : last]


def _range(of: Finding | TraceStep, start: tuple[int, int], end: tuple[int, int], lines: Lines) -> _Range:
    return _Range(_position(of, *start, lines), _position(of, *end, lines))


def _position(of: Finding | TraceStep, line: int, column: int, lines: Lines) -> _Position:
    before = (lines.get(of.path, line, of.cell) or "")[: column - 1]
    return _Position(line, column + len(before.encode("utf-8", "surrogatepass")) - len(before))
