"""The lines of the files that findings are about."""

from __future__ import annotations

import io
from collections.abc import Callable


class Lines:
    """Asks ``text_of`` for the text of a file (by display path; None where it cannot be had) and keeps its lines."""

    def __init__(self, text_of: Callable[[str], str | None]) -> None:
        self._text_of = text_of
        self._lines: dict[str, list[str]] = {}

    def get(self, path: str, line: int) -> str | None:
        """A line of a file, counted from 1, without its newline."""
        if path not in self._lines:
            # str.splitlines would also split at form feeds, which Python does not count as lines
            self._lines[path] = list(io.StringIO(self._text_of(path) or "", newline=None))
        lines = self._lines[path]
        return lines[line - 1].rstrip("\n") if 0 < line <= len(lines) else None
