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

    def indent(self, line: int) -> str:
        """The blanks that a line begins with."""
        content = self.lines[line - 1]
        return content[: len(content) - len(content.lstrip(" \t\f"))]

    def begins_line(self, span: Span) -> bool:
        """Whether nothing stands before the span on its line."""
        return not self.lines[span.line - 1][: span.column - 1].strip()

    def ends_line(self, span: Span) -> bool:
        """Whether nothing but a comment stands behind the span on its line."""
        rest = self.lines[span.end_line - 1][span.end_column - 1 :].strip()
        return not rest or rest.startswith("#")

    def next_statement(self, line: int, column: int, last: int) -> int | None:
        """The line of the first statement behind a place, up to line ``last``; None where it is on the same line."""
        rest = self.lines[line - 1][column - 1 :].strip()
        if rest and not rest.startswith("#"):
            return None
        for number in range(line + 1, last + 1):
            content = self.lines[number - 1].strip()
            if content and not content.startswith("#"):
                return number
        return None
