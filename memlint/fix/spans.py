"""The text of a file by lines, spans and offsets, with its newlines unchanged."""

from __future__ import annotations

import functools
import itertools
from bisect import bisect_right

from memlint.finding import Span
from memlint.patterns import NEWLINE


class EditError(Exception):
    """Why an edit cannot be made, a clause for the user."""


class Text:
    """A text with lines and columns from 1. ``lines`` keep their newlines; after the last one there is an extra empty
    line. ``whole``: the span of the text."""

    def __init__(self, text: str) -> None:
        ends = [(match.start(), match.end()) for match in NEWLINE.finditer(text)]
        self._starts = [0, *(end for _, end in ends)]
        self._ends = [*(start for start, _ in ends), len(text)]
        self.whole = text
        bounds = [*self._starts, len(text)]
        self.lines = [text[start:end] for start, end in itertools.pairwise(bounds) if start < end]

    @functools.cached_property
    def quotes(self) -> tuple[int, int]:
        """The numbers of single and double quotes."""
        return self.whole.count("'"), self.whole.count('"')

    def offset(self, line: int, column: int) -> int:
        """The offset of a position. Raises EditError if the text does not have it."""
        if 1 <= line <= len(self._starts) and column >= 1:
            offset = self._starts[line - 1] + column - 1
            if offset <= self._ends[line - 1]:
                return offset
        raise EditError(f"there is no place {line}:{column} in the file")

    def line(self, offset: int) -> int:
        """The line of an offset."""
        return bisect_right(self._starts, offset)

    def newline(self, line: int) -> str:
        """The newline of a line; for an unterminated last line, that of the line before."""
        for index in (line - 1, line - 2):
            if 0 <= index < len(self._starts) - 1:
                return self.whole[self._ends[index] : self._starts[index + 1]]
        return "\n"

    def __getitem__(self, span: Span) -> str:
        return self.whole[self.offset(span.line, span.column) : self.offset(span.end_line, span.end_column)]

    def grouped(self, span: Span) -> Span | None:
        """The span with the parentheses around it that only group it; None if there are none on its lines."""
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
        """The indentation of a line."""
        content = self.lines[line - 1]
        return content[: len(content) - len(content.lstrip(" \t\f"))]

    def begins_line(self, span: Span) -> bool:
        """Whether the span is the first code on its line."""
        return not self.lines[span.line - 1][: span.column - 1].strip()

    def ends_line(self, span: Span) -> bool:
        """Whether only a comment may follow the span on its line."""
        rest = self.lines[span.end_line - 1][span.end_column - 1 :].strip()
        return not rest or rest.startswith("#")

    def next_statement(self, line: int, column: int, last: int) -> int | None:
        """The line of the first statement after a position, up to line ``last``; None if it is on the same line."""
        rest = self.lines[line - 1][column - 1 :].strip()
        if rest and not rest.startswith("#"):
            return None
        for number in range(line + 1, last + 1):
            content = self.lines[number - 1].strip()
            if content and not content.startswith("#"):
                return number
        return None


@functools.lru_cache(maxsize=4)
def text_of(source: str) -> Text:
    """The lines of a source, memoised, as the findings of a file come one after another."""
    return Text(source)
