"""Findings as the protocol's diagnostics."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import msgspec
from lsprotocol import types
from pygls.uris import from_fs_path

from memlint.engine.rules.rooms import own_rooms
from memlint.finding import Finding, Span
from memlint.lsp.documents import Places, View
from memlint.lsp.messages import Answer
from memlint.project.presence import is_file, listed
from memlint.report.measured import said

SOURCE = "memlint"
_SEVERITY = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "note": types.DiagnosticSeverity.Information,
}
#: the text of a file (absolute path) or of a cell in it, as open or on the disk; None if it cannot be read
Views = Callable[[str, int | None], View | None]


class Report(msgspec.Struct, frozen=True):
    """The findings in a text. ``findings`` and ``diagnostics`` correspond; ``problems`` follow them. ``version``: of
    the analysed file or notebook; ``text``: of the text itself; ``number``: of the analysis."""

    version: int
    text: int | None
    number: int
    answer: Answer
    findings: tuple[Finding, ...] = ()
    diagnostics: tuple[types.Diagnostic, ...] = ()

    def says_as(self, other: Report | None) -> bool:
        """Whether another report is equal, for the same text."""
        return other is not None and (other.text, other.diagnostics) == (self.text, self.diagnostics)

    @property
    def identity(self) -> str:
        """The result id for a pulling client."""
        return str(self.number)


def report_of(
    answer: Answer, version: int, path: str, cell: int | None, view: View, views: Views, *, first: bool = True
) -> Report:
    """The report of an answer for a file, or for one cell of it. The first one includes why the file was not checked,
    if so."""
    findings = tuple(one for one in answer.findings if answer.paths.get(one.path) == path and one.cell == cell)
    diagnostics = [diagnostic(one, view.places, answer.paths, views) for one in findings]
    start = types.Range(types.Position(0, 0), types.Position(0, 0))
    mistake = "an internal error; see the log of the language server" if answer.mistake else ""
    for problem in filter(None, (*answer.problems, answer.error, mistake)) if first else ():
        message = f"this file was not checked: {problem}"
        severity = types.DiagnosticSeverity.Error if answer.error else types.DiagnosticSeverity.Warning
        diagnostics.append(types.Diagnostic(start, message, severity=severity, source=SOURCE))
    return Report(version, view.version, answer.number, answer, findings, tuple(diagnostics))


def diagnostic(finding: Finding, places: Places, paths: Mapping[str, str], views: Views) -> types.Diagnostic:
    """One finding. ``data`` identifies it for code actions and hovers."""
    page = page_of(finding.code)
    measured = "" if finding.evidence is None else f"measured: {said(finding.evidence)}"
    return types.Diagnostic(
        range=places.span(Span(finding.line, finding.column, finding.end_line, finding.end_column)),
        message="\n".join(filter(None, (finding.message, finding.help, measured))),
        severity=_SEVERITY[finding.severity],
        code=finding.code,
        code_description=None if page is None else types.CodeDescription(uri_of(page)),
        source=SOURCE,
        related_information=list(_related(finding, paths, views)) or None,
        data={"code": finding.code, "fingerprint": finding.fingerprint},
    )


@functools.cache
def page_of(code: str) -> Path | None:
    """The page of a built-in rule; None if there is none."""
    rooms = own_rooms()
    folder = next((name for name in sorted(listed(rooms) or ()) if name.startswith(f"{code.lower()}_")), None)
    page = None if folder is None else rooms / folder / "README.md"
    return page if page is not None and is_file(page) else None


def uri_of(path: Path | str) -> str:
    return from_fs_path(str(path)) or ""


def _related(finding: Finding, paths: Mapping[str, str], views: Views) -> Iterable[types.DiagnosticRelatedInformation]:
    for step in finding.trace:
        path = paths.get(step.path)
        view = None if path is None else views(path, step.cell)
        if view is not None:
            at = view.places.position(step.line, step.column)
            yield types.DiagnosticRelatedInformation(types.Location(view.uri, types.Range(at, at)), step.message)
