"""The lines of the files that findings are about."""

from __future__ import annotations

import io
from collections.abc import Callable


class Lines:
    """The lines of files, each read once. ``text_of``: gives the text of a file by its display path, None if it cannot
    be read; ``cell_of``: the same for a cell of a notebook."""

    def __init__(
        self, text_of: Callable[[str], str | None], cell_of: Callable[[str, int], str | None] = lambda path, cell: None
    ) -> None:
        self._text_of, self._cell_of = text_of, cell_of
        self._lines: dict[tuple[str, int | None], list[str]] = {}

    def get(self, path: str, line: int, cell: int | None = None) -> str | None:
        """A line of a file or of a cell, from 1, without its newline; None if it is unknown."""
        if (path, cell) not in self._lines:
            text = self._text_of(path) if cell is None else self._cell_of(path, cell)
            # str.splitlines would also split at form feeds, which Python does not count as lines
            self._lines[path, cell] = list(io.StringIO(text or "", newline=None))
        lines = self._lines[path, cell]
        return lines[line - 1].rstrip("\n") if 0 < line <= len(lines) else None

    def newline(self, path: str) -> str:
        """The line ending of a file."""
        return "\r\n" if "\r\n" in (self._text_of(path) or "") else "\n"
