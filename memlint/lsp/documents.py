"""The open documents: their texts in the client's view, and positions in the client's units."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec
from lsprotocol import types
from pygls.uris import to_fs_path

from memlint.finding import Span
from memlint.fix.spans import Text
from memlint.project import encoding_of

Encoding = str


class Places:
    """Positions of a text in a client's units, from 0, and back. (Only \\n, \\r\\n and \\r end a line in the protocol,
    not form feeds.)"""

    def __init__(self, text: str, encoding: Encoding) -> None:
        self.text = text
        self._lines = Text(text)
        self._encoding = encoding

    def position(self, line: int, column: int) -> types.Position:
        """The position of a line and a column that count from 1, columns in characters; clipped to the text."""
        row = self._row(line)
        if row is None:
            return self.end()
        return types.Position(line - 1, self._units(row[: max(column - 1, 0)]))

    def end(self) -> types.Position:
        """The end of the text."""
        number = self._lines.line(len(self.text))
        return types.Position(number - 1, self._units(self._row(number) or ""))

    def span(self, span: Span) -> types.Range:
        start = self.position(span.line, span.column)
        end = self.position(span.end_line, span.end_column)
        return types.Range(start, max(start, end, key=lambda at: (at.line, at.character)))

    def at(self, offset: int) -> types.Position:
        """The position of an offset."""
        line = self._lines.line(offset)
        return self.position(line, offset - self._lines.offset(line, 1) + 1)

    def offset(self, position: types.Position) -> int:
        """The offset of a position; beyond the end of its line, that end."""
        row = self._row(position.line + 1)
        if row is None:
            return len(self.text)
        return self._lines.offset(position.line + 1, 1) + self._characters(row, position.character)

    def place(self, position: types.Position) -> tuple[int, int]:
        """The line and column of a position, from 1."""
        offset = self.offset(position)
        line = self._lines.line(offset)
        return line, offset - self._lines.offset(line, 1) + 1

    def _row(self, line: int) -> str | None:
        """A line without its end; None after the last one."""
        if 1 <= line <= len(self._lines.lines):
            return self._lines.lines[line - 1].rstrip("\r\n")
        return "" if line == self._lines.line(len(self.text)) else None

    def _units(self, text: str) -> int:
        if text.isascii() or self._encoding == types.PositionEncodingKind.Utf32:
            return len(text)
        if self._encoding == types.PositionEncodingKind.Utf8:
            return len(text.encode("utf-8", "surrogatepass"))
        return len(text.encode("utf-16-le", "surrogatepass")) // 2

    def _characters(self, row: str, units: int) -> int:
        """The number of characters in so many units of a line; a position inside a character is before it."""
        if row.isascii() or self._encoding == types.PositionEncodingKind.Utf32:
            return min(units, len(row))
        done = 0
        for count, character in enumerate(row):
            done += self._units(character)
            if done > units:
                return count
        return len(row)


class View(msgspec.Struct, frozen=True):
    """A text in the client's view; ``version``: None if it is not open."""

    uri: str
    version: int | None
    places: Places


class Document(msgspec.Struct):
    """One open file, or a cell of an open notebook. ``path``: absolute; ``places``: its text. ``saved``: whether it
    equals the file on the disk, by the client's notifications."""

    uri: str
    path: Path
    version: int
    places: Places
    saved: bool = True

    @property
    def text(self) -> str:
        return self.places.text

    @property
    def views(self) -> dict[int | None, View]:
        """Its texts by cell number."""
        return {None: View(self.uri, self.version, self.places)}

    def change(self, changes: Iterable[types.TextDocumentContentChangeEvent], version: int, encoding: Encoding) -> None:
        """Apply the client's changes in order."""
        for change in changes:
            if isinstance(change, types.TextDocumentContentChangePartial):
                start, end = self.places.offset(change.range.start), self.places.offset(change.range.end)
                text = self.text[:start] + change.text + self.text[max(start, end) :]
            else:
                text = change.text
            self.places = Places(text, encoding)
        self.version, self.saved = version, False

    def content(self) -> bytes:
        """The file's bytes in its declared encoding, if that exists, with a question mark for each character that it
        cannot represent."""
        plain = self.text.encode("utf-8", "replace")
        try:
            return self.text.encode(encoding_of(plain), "replace")
        except (SyntaxError, LookupError):
            return plain


def path_of(uri: str) -> Path | None:
    """The absolute path of a document; None if it is no file."""
    try:
        name = to_fs_path(uri)
    except ValueError:
        return None
    return Path(name) if name and Path(name).is_absolute() and "\0" not in name else None
