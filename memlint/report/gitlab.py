"""GitLab's Code Quality report: the fields of a Code Climate issue that GitLab reads."""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import Literal

import msgspec

from memlint.finding import Finding, Result, Severity
from memlint.json_text import indented
from memlint.report.facts import details, in_cell, rule_of, shown
from memlint.report.lines import Lines
from memlint.report.setting import Setting

_SEVERITIES: dict[Severity, str] = {"error": "major", "warning": "minor", "note": "info"}


class _Position(msgspec.Struct, frozen=True):
    line: int
    column: int


class _Positions(msgspec.Struct, frozen=True):
    begin: _Position
    end: _Position


class _Lines(msgspec.Struct, frozen=True):
    begin: int
    end: int


class _Location(msgspec.Struct, frozen=True):
    path: str
    lines: _Lines
    positions: _Positions


class _Content(msgspec.Struct, frozen=True):
    body: str


class _Issue(msgspec.Struct, frozen=True, kw_only=True):
    type: Literal["issue"] = "issue"
    check_name: str
    description: str
    content: _Content
    categories: tuple[str, ...] = ("Performance",)
    severity: str
    fingerprint: str
    location: _Location


class _Fingerprints:
    """Makes fingerprints unique in a report: equal parts, as in several projects of one run, are numbered."""

    def __init__(self) -> None:
        self._seen: Counter[tuple[str, ...]] = Counter()

    def of(self, *parts: str) -> str:
        self._seen[parts] += 1
        text = "\0".join((*parts, str(self._seen[parts])))
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def render(result: Result, lines: Lines, setting: Setting) -> str:
    """A list of issues: the findings, and the files that could not be analysed."""
    prints = _Fingerprints()
    issues = [_issue(one, setting, prints) for one in shown(result)]
    for failure in result.failures:
        path = setting.from_root(failure.path)
        said = f"this file could not be analysed: {failure.reason}"
        issues.append(
            _Issue(
                check_name="failure",
                description=said,
                content=_Content(said),
                categories=("Bug Risk",),
                severity="blocker",
                fingerprint=prints.of("failure", path, failure.reason),
                location=_location(path, 1, 1, 1, 1),
            )
        )
    return indented(issues)


def _issue(one: Finding, setting: Setting, prints: _Fingerprints) -> _Issue:
    path = setting.from_root(one.path)
    return _Issue(
        check_name=rule_of(one),
        description=f"{in_cell(one)}{one.message}" + (f" (help: {one.help})" if one.help else ""),
        content=_Content(f"{in_cell(one)}{details(one, setting)}"),
        severity=_SEVERITIES[one.severity],
        fingerprint=prints.of(one.code, path, one.fingerprint),
        location=_location(path, one.line, one.column, one.end_line, one.end_column),
    )


def _location(path: str, line: int, column: int, end_line: int, end_column: int) -> _Location:
    span = _Positions(_Position(line, column), _Position(end_line, end_column))
    return _Location(path, _Lines(line, end_line), span)
