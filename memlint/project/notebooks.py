"""The names that the notebooks of a project mention. They are not linted, but may be its programs."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from memlint.patterns import lazy_pattern
from memlint.reading import MAX_DATA, read_file

#: a larger notebook contains pictures, and is identified by its size and time
_MAX_HASHED = 1 << 21
_WORD = lazy_pattern(r"[^\W\d]\w*")


class Notebooks:
    """``paths``: their paths."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self.paths = tuple(paths)

    def mention(self, name: str) -> bool:
        """Whether the code of one of them may use a name; True if one cannot be read."""
        return any(words is None or name in words for words in self._words)

    @functools.cached_property
    def _words(self) -> tuple[frozenset[str] | None, ...]:
        return tuple(_words(path) for path in self.paths)

    def state(self) -> tuple[tuple[str, str], ...]:
        """A value for each that changes with it."""
        return tuple((str(path), _state(path)) for path in self.paths)


def _words(path: Path) -> frozenset[str] | None:
    import msgspec

    try:
        cells = _code(msgspec.json.decode(read_file(path, MAX_DATA)))
        return frozenset(word for text in cells for word in _WORD.findall(text))
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, AttributeError, TypeError, RecursionError):
        return None


def _code(notebook: Any) -> Iterator[str]:
    """The sources of the code cells, in the current format or that of version 3 and before."""
    sheets = notebook.get("worksheets", ())
    for cell in (*notebook.get("cells", ()), *(cell for sheet in sheets for cell in sheet.get("cells", ()))):
        if cell.get("cell_type") == "code":
            source = cell.get("source", cell.get("input", ""))
            yield source if isinstance(source, str) else "".join(source)


def _state(path: Path) -> str:
    try:
        status = path.stat()
        if status.st_size > _MAX_HASHED:
            return f"{status.st_size} {status.st_mtime_ns}"
        return hashlib.blake2b(read_file(path, _MAX_HASHED), digest_size=16).hexdigest()
    except OSError as error:
        return type(error).__name__
