"""The text of a file by spans, with its newlines as they are."""

from __future__ import annotations

import io

from memlint.finding import Span


class Text:
    """Lines and columns count from 1. A line keeps its newline, whatever it is (``\\n``, ``\\r\\n``, ``\\r``)."""

    def __init__(self, text: str) -> None:
        # not splitlines(), for which a form feed ends a line, too
        self.lines = io.StringIO(text, newline="").readlines()

    def __getitem__(self, span: Span) -> str:
        if span.line == span.end_line:
            return self.lines[span.line - 1][span.column - 1 : span.end_column - 1]
        first = self.lines[span.line - 1][span.column - 1 :]
        last = self.lines[span.end_line - 1][: span.end_column - 1]
        return "".join((first, *self.lines[span.line : span.end_line - 1], last))

    def grouped(self, span: Span) -> Span | None:
        """The span with the parentheses that group it, and call nothing; None where there are none on its lines."""
        before = self.lines[span.line - 1][: span.column - 1]
        after = self.lines[span.end_line - 1][span.end_column - 1 :]
        opened, closed = before.rstrip(), after.lstrip()
        if not opened.endswith("(") or not closed.startswith(")"):
            return None
        caller = opened[:-1].rstrip()
        if not caller.endswith(("=", "+", "-", "*", "/", ",", "(", "[", "{", ":")):
            return None
        return Span(span.line, len(opened), span.end_line, span.end_column + len(after) - len(closed) + 1)
