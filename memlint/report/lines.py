"""The lines of the files that findings are about."""

from __future__ import annotations

import io
from collections.abc import Callable


class Lines:
    """Asks ``text_of`` for the text of a file (by display path; None where it cannot be had) and keeps its lines;
    ``cell_of``: the same for a cell of a notebook."""

    def __init__(
        self, text_of: Callable[[str], str | None], cell_of: Callable[[str, int], str | None] = lambda path, cell: None
    ) -> None:
        self._text_of, self._cell_of = text_of, cell_of
        self._lines: dict[tuple[str, int | None], list[str]] = {}

    def get(self, path: str, line: int, cell: int | None = None) -> str | None:
        """A line of a file, or of a cell, counted from 1, without its newline."""
        if (path, cell) not in self._lines:
            text = self._text_of(path) if cell is None else self._cell_of(path, cell)
            # str.splitlines would also split at form feeds, which Python does not count as lines
            self._lines[path, cell] = list(io.StringIO(text or "", newline=None))
        lines = self._lines[path, cell]
        return lines[line - 1].rstrip("\n") if 0 < line <= len(lines) else None

    def newline(self, path: str) -> str:
        """What ends the lines of a file, for what is written into it."""
        return "\r\n" if "\r\n" in (self._text_of(path) or "") else "\n"
