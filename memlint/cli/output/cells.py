"""The cells of notebooks, for excerpts."""

from __future__ import annotations

from collections.abc import Callable


class Cells:
    """``content_of``: the bytes of a file (by display path); raises OSError."""

    def __init__(self, content_of: Callable[[str], bytes]) -> None:
        self._content_of = content_of
        self._texts: dict[str, dict[int, str]] = {}

    def get(self, path: str, cell: int) -> str | None:
        """The content of a cell, by its number; None if it cannot be read."""
        if path not in self._texts:
            self._texts[path] = self._read(path)
        return self._texts[path].get(cell)

    def _read(self, path: str) -> dict[int, str]:
        from memlint.project import NotebookError, cell_texts

        try:
            return cell_texts(self._content_of(path))
        except (OSError, NotebookError):
            return {}
