"""Edits on a text: their offsets, their result, and the mapping of positions."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

import msgspec

from memlint.finding import Edit
from memlint.fix.spans import EditError, Text
from memlint.patterns import NEWLINE
from memlint.project import Cell


class Placed(msgspec.Struct, frozen=True, gc=False):
    """An edit by offsets: ``content`` replaces the characters from ``start`` to before ``end``."""

    start: int
    end: int
    content: str


def place(text: str, edits: Iterable[Edit]) -> tuple[Placed, ...]:
    """The edits of one file by offsets, in order, with the newlines of the edited lines. Insertions at one offset keep
    their order. Raises EditError for positions that the text does not have, and for overlapping edits."""
    lines = Text(text)
    placed = []
    for edit in edits:
        start = lines.offset(edit.span.line, edit.span.column)
        end = lines.offset(edit.span.end_line, edit.span.end_column)
        if end < start:
            raise EditError("an edit ends before it begins")
        placed.append(Placed(start, end, _with_newlines(edit.content, lines.newline(edit.span.line))))
    placed.sort(key=lambda one: (one.start, one.end))
    for before, after in itertools.pairwise(placed):
        if after.start < before.end:
            raise EditError("its edits overlap")
    return tuple(placed)


def _with_newlines(content: str, newline: str) -> str:
    return NEWLINE.sub(lambda _: newline, content)


def splice(text: str, placed: Sequence[Placed]) -> str:
    """The text after the edits, which must be in order and not overlap."""
    parts, at = [], 0
    for one in placed:
        parts += [text[at : one.start], one.content]
        at = one.end
    return "".join([*parts, text[at:]])


class Move:
    """Maps positions of a text to those after edits. ``cells``, ``cells_after``: the cells of a notebook."""

    def __init__(
        self,
        before: str,
        placed: Sequence[Placed],
        after: str,
        cells: Sequence[Cell] = (),
        cells_after: Sequence[Cell] = (),
    ) -> None:
        self._before, self._after = Text(before), Text(after)
        self._placed = placed
        self.cells, self.cells_after = cells, cells_after

    def holds(self, line: int, column: int, new_line: int, new_column: int) -> bool:
        """Whether a position of the edited text is that of ``line``, ``column`` before the edits; a replacement, or an
        insertion beside the position, counts as the same."""
        try:
            old, new = self._before.offset(line, column), self._after.offset(new_line, new_column)
        except EditError:
            return False
        low, high = self._spread(old)
        return low <= new <= high

    def origin(self, new_line: int, new_column: int) -> int:
        """The line of a position before the edits; for inserted text, the line of the insertion."""
        try:
            new = self._after.offset(new_line, new_column)
        except EditError:
            return new_line
        shift = 0
        for one in self._placed:
            start = one.start + shift
            if new < start:
                break
            if new < start + len(one.content):
                return self._before.line(one.start)
            shift += len(one.content) - (one.end - one.start)
        return self._before.line(new - shift)

    def _spread(self, offset: int) -> tuple[int, int]:
        low = high = offset
        shift, touched = 0, False
        for one in self._placed:
            if one.start > offset:
                break
            grown = len(one.content) - (one.end - one.start)
            if one.end >= offset:
                low = low if touched else one.start + shift
                touched = True
                high = one.end + shift + grown
            shift += grown
        return (low, high) if touched else (offset + shift, offset + shift)
