"""The findings on lines that have changed since a revision; all others are held back."""

from __future__ import annotations

import msgspec

from memlint.config import ConfigError
from memlint.engine.judging import Linted
from memlint.engine.rules.selection import ALWAYS
from memlint.finding import Finding, HeldBack, Span
from memlint.fix.cells import module_span
from memlint.patterns import lazy_pattern
from memlint.project import Project
from memlint.project.changes import ALL, ChangesError, changed_lines

#: a line end for Python, and none for git
_OTHER_NEWLINE = lazy_pattern(r"\r(?!\n)")


class Changed:
    """The changed lines of one project, in its original contents."""

    def __init__(self, project: Project, revision: str | None) -> None:
        """``revision``: None is the fork point of this branch. Raises ConfigError."""
        self._project = project
        paths = [project.path(display) for display in project.linted]
        try:
            found = changed_lines(paths or [project.root / "*"], revision)
        except ChangesError as error:
            raise ConfigError(f"--since: {error}") from None
        self._lines = {display: found[path] for display in project.linted if (path := project.path(display)) in found}
        #: fingerprints of findings held back, which stay when fixes move lines
        self._held_back: set[str] = set()

    def applied(self, linted: Linted, project: Project) -> Linted:
        """The findings on changed lines. ``project``: the original one, or (after that) one with other contents."""
        if project is self._project:
            self._held_back = {one.fingerprint for one in linted.findings if not self._is_changed(one)}
        kept = tuple(one for one in linted.findings if one.fingerprint not in self._held_back)
        count = sum(one.suppressed is None for one in linted.findings) - sum(one.suppressed is None for one in kept)
        # the lines of the others are not kept
        return msgspec.structs.replace(linted, findings=kept, held_back=HeldBack(unchanged_lines=count))

    def _is_changed(self, finding: Finding) -> bool:
        lines = self._lines.get(finding.path)
        # the error of an unparsable file is seldom on the line that causes it
        if lines is None or lines is ALL or finding.code == ALWAYS:
            return lines is not None
        if _OTHER_NEWLINE.search(self._project.sources[finding.path].text):
            return True
        around = finding.statement
        ranges = [(finding.line, finding.end_line)] + ([] if around is None else [(around.line, around.end_line)])
        cells = self._project.sources[finding.path].cells
        spans = [module_span(cells, finding.cell, Span(first, 1, last, 1)) for first, last in ranges]
        return any(lines.touch(span.line, span.end_line) for span in spans)
