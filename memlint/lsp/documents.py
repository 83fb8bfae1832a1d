"""The open documents: their texts as the client sees them, and places in them in the client's units."""

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
    """Places of a text in the units of a client, from 0 and back. (Neither form feeds nor other separators end a line:
    the protocol knows \\n, \\r\\n and \\r.)"""

    def __init__(self, text: str, encoding: Encoding) -> None:
        self.text = text
        self._lines = Text(text)
        self._encoding = encoding

    def position(self, line: int, column: int) -> types.Position:
        """A line and a column that count from 1, columns in characters; what lies outside is moved inside."""
        row = self._row(line)
        if row is None:
            return self.end()
        return types.Position(line - 1, self._units(row[: max(column - 1, 0)]))

    def end(self) -> types.Position:
        """Where the text ends."""
        number = self._lines.line(len(self.text))
        return types.Position(number - 1, self._units(self._row(number) or ""))

    def span(self, span: Span) -> types.Range:
        start = self.position(span.line, span.column)
        end = self.position(span.end_line, span.end_column)
        return types.Range(start, max(start, end, key=lambda at: (at.line, at.character)))

    def at(self, offset: int) -> types.Position:
        """The place of an offset."""
        line = self._lines.line(offset)
        return self.position(line, offset - self._lines.offset(line, 1) + 1)

    def offset(self, position: types.Position) -> int:
        """The offset of a place; of one behind the end of its line, that end."""
        row = self._row(position.line + 1)
        if row is None:
            return len(self.text)
        return self._lines.offset(position.line + 1, 1) + self._characters(row, position.character)

    def place(self, position: types.Position) -> tuple[int, int]:
        """The line and column of a place, which count from 1."""
        offset = self.offset(position)
        line = self._lines.line(offset)
        return line, offset - self._lines.offset(line, 1) + 1

    def _row(self, line: int) -> str | None:
        """A line without its end; None behind the last one."""
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
        """How many characters of a line take so many units; a place inside of a character is before it."""
        if row.isascii() or self._encoding == types.PositionEncodingKind.Utf32:
            return min(units, len(row))
        done = 0
        for count, character in enumerate(row):
            done += self._units(character)
            if done > units:
                return count
        return len(row)


class View(msgspec.Struct, frozen=True):
    """A text as the client knows it; ``version``: None where it is not open."""

    uri: str
    version: int | None
    places: Places


class Document(msgspec.Struct):
    """One open file, or a cell of an open notebook. ``path``: absolute; ``places``: its text. ``saved``: whether it is
    what the disk holds, as far as the client has said."""

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
        """Its texts, by the number of the cell."""
        return {None: View(self.uri, self.version, self.places)}

    def change(self, changes: Iterable[types.TextDocumentContentChangeEvent], version: int, encoding: Encoding) -> None:
        """Take what the client says was typed, in order."""
        for change in changes:
            if isinstance(change, types.TextDocumentContentChangePartial):
                start, end = self.places.offset(change.range.start), self.places.offset(change.range.end)
                text = self.text[:start] + change.text + self.text[max(start, end) :]
            else:
                text = change.text
            self.places = Places(text, encoding)
        self.version, self.saved = version, False

    def content(self) -> bytes:
        """The bytes that the file would hold: in the encoding that it declares, where there is such a one. What that
        cannot hold becomes a question mark: each character stays at its place."""
        plain = self.text.encode("utf-8", "replace")
        try:
            return self.text.encode(encoding_of(plain), "replace")
        except (SyntaxError, LookupError):
            return plain


def path_of(uri: str) -> Path | None:
    """The absolute path that a document has; None for one that is no file."""
    try:
        name = to_fs_path(uri)
    except ValueError:
        return None
    return Path(name) if name and Path(name).is_absolute() and "\0" not in name else None
