"""Spans of a unit's records."""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate

from memlint.finding import Span

#: the offsets of the first character and after the last one
Offsets = tuple[int, int]


class SpanTable:
    """Spans of a unit's records by their ordinal, in the file's lines and columns.

    A span excludes comments, newlines and parentheses around the record. That of a decorated definition starts
    at ``def`` or ``class``.

    ``lines``: the offsets at which the unit's lines start; ``dropped``: by line, the number of characters at its start
    that offsets do not count.
    """

    def __init__(
        self,
        start_line: int,
        lines: list[int],
        spans: list[Offsets],
        headers: dict[int, Offsets],
        dropped: dict[int, int] | None = None,
    ) -> None:
        self._start_line = start_line
        self._lines = lines
        self._dropped = dropped or {}
        self._spans = spans
        self._headers = headers

    def __len__(self) -> int:
        return len(self._spans)

    def __getitem__(self, at: int) -> Span:
        """The whole extent of a record. Raises IndexError for an ordinal that the unit did not use."""
        return self._span(*self._spans[at])

    def header(self, at: int) -> Span:
        """The header of a compound statement or handler up to its colon (``for x in y:``); the span of any other."""
        return self._span(*self._headers.get(at, self._spans[at]))

    def _span(self, start: int, end: int) -> Span:
        line, column = self._position(start)
        end_line, end_column = self._position(end)
        return Span(line, column, end_line, end_column)

    def _position(self, offset: int) -> tuple[int, int]:
        line = bisect_right(self._lines, offset)
        return line + self._start_line - 1, offset - self._lines[line - 1] + 1 + self._dropped.get(line, 0)


def line_starts(text: str) -> list[int]:
    """The offsets at which the lines of a text start. Lines end in \\n."""
    return [0, *accumulate(len(line) + 1 for line in text.split("\n")[:-1])]
