"""Edits on the sources of a notebook's cells, in its JSON text, of which nothing else changes."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from memlint.fix.edits import Placed
from memlint.fix.spans import EditError
from memlint.patterns import lazy_pattern

_BLANK = lazy_pattern(r"[ \t\r\n]*")
_BRACKET = lazy_pattern(r"[\"\[\]{}]")
_SCALAR = lazy_pattern(r"[^\s,\]}]*")
#: the escapes of a character in a string
_CHARACTER = lazy_pattern(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.|[^\\]", re.DOTALL
)


_STRINGS = json.JSONDecoder(strict=False)


class _Value(msgspec.Struct, frozen=True):
    """The source of a cell: its range in the JSON text, and each of its strings with quotes."""

    start: int
    end: int
    strings: tuple[tuple[int, int], ...]


def rewritten(raw: bytes, edits: Mapping[int, Sequence[Placed]]) -> bytes:
    """A notebook after edits on the sources of its cells, by the number of the cell, with offsets in its source. Raises
    EditError if the JSON has another structure."""
    try:
        text = raw.decode()
        values = dict(_Reader(text).sources())
        wanted = [(values[number], placed) for number, placed in edits.items() if placed]
        parts, at = [], 0
        for value, placed in sorted(wanted, key=lambda row: row[0].start):
            parts += [text[at : value.start], _edited(text, value, placed)]
            at = value.end
    except (ValueError, KeyError, IndexError) as error:
        raise EditError(f"its JSON cannot be edited: {error}") from None
    return "".join([*parts, text[at:]]).encode()


class _Reader:
    """Finds positions in a valid JSON document."""

    def __init__(self, text: str) -> None:
        self._text = text

    def sources(self) -> Iterator[tuple[int, _Value]]:
        """The source of each code cell, by its number among all cells; numbered as in `memlint.project.cells`."""
        top = self._members(self._skip(1 if self._text.startswith("\ufeff") else 0))
        groups = [top["cells"]] if "cells" in top else []
        for sheet in self._elements(top["worksheets"]) if "worksheets" in top else ():
            members = self._members(sheet)
            groups += [members["cells"]] if "cells" in members else []
        cells = (cell for group in groups for cell in self._elements(group))
        for number, cell in enumerate(cells, 1):
            members = self._members(cell)
            at = members.get("source", members.get("input"))
            if at is not None and self._string(members.get("cell_type")) == "code":
                yield number, self._value(at)

    def _value(self, at: int) -> _Value:
        strings = self._elements(at) if self._text[at] == "[" else [at]
        return _Value(at, self._end(at), tuple((start, self._end(start)) for start in strings))

    def _string(self, at: int | None) -> str:
        return str(_STRINGS.raw_decode(self._text, at)[0]) if at is not None and self._text[at] == '"' else ""

    def _skip(self, at: int) -> int:
        found = _BLANK.match(self._text, at)
        return at if found is None else found.end()

    def _members(self, at: int) -> dict[str, int]:
        """The positions of the values of an object's members; of equal names the last one counts."""
        found: dict[str, int] = {}
        if self._text[at] != "{":
            return found
        for key in self._elements(at):
            name, end = _STRINGS.raw_decode(self._text, key)
            found[name] = self._skip(self._skip(end) + 1)  # after the colon
        return found

    def _elements(self, at: int) -> list[int]:
        """The positions of an array's elements, or of an object's keys."""
        found: list[int] = []
        if self._text[at] not in "[{":
            return found
        is_object, at = self._text[at] == "{", self._skip(at + 1)
        while self._text[at] not in "]}":
            found.append(at)
            end = self._skip(self._end(at))
            if is_object:
                end = self._skip(self._end(self._skip(end + 1)))
            at = self._skip(end + 1) if self._text[end] == "," else end
        return found

    def _end(self, at: int) -> int:
        """The end of a value."""
        text, depth = self._text, 0
        if text[at] not in '"[{':
            found = _SCALAR.match(text, at)
            return at if found is None else found.end()
        while True:
            sign = _BRACKET.search(text, at)
            if sign is None:
                raise ValueError("it ends too early")
            at = sign.end()
            if sign[0] == '"':
                at = _STRINGS.raw_decode(text, sign.start())[1]
            else:
                depth += 1 if sign[0] in "[{" else -1
            if not depth:
                return at


#: a character and its escape
_Character = tuple[str, str]


def _edited(text: str, value: _Value, placed: Sequence[Placed]) -> str:
    """The JSON text of a source after the edits."""
    pieces = [_characters(text[start + 1 : end - 1]) for start, end in value.strings]
    is_list = text[value.start] == "["
    if not is_list:
        return _quoted(_spliced(pieces[0], placed, 0, text.isascii()))
    by_lines = all(char != "\n" for piece in pieces for char, _ in piece[:-1])
    lead = text[value.start + 1 : value.strings[0][0]] if pieces else ""
    tail = text[value.strings[-1][1] : value.end - 1] if pieces else ""
    gaps = [lead, *(text[one[1] : other[0]] for one, other in itertools.pairwise(value.strings))]
    usual = gaps[1] if len(gaps) > 1 else f",{lead or ' '}"
    made: list[str] = []
    for first, last, start, edits in _groups([len(piece) for piece in pieces], placed):
        characters = [one for piece in pieces[first:last] for one in piece]
        strings = [text[slice(*value.strings[number])] for number in range(first, last)]
        if edits:
            new = _spliced(characters, edits, start, text.isascii())
            strings = [_quoted(line) for line in (_lines(new) if by_lines else [new]) if line]
        for number, string in enumerate(strings):
            own = gaps[first + number] if not edits or number == 0 else usual
            made += [(own if first and made else usual if made else lead), string]
    return f"[{''.join(made)}{tail if made else ''}]"


def _groups(lengths: Sequence[int], placed: Sequence[Placed]) -> Iterator[tuple[int, int, int, list[Placed]]]:
    """The strings of a list in groups: the index of the first, that after the last, the offset of the first, and the
    edits, each of which affects one group alone. An insertion between two strings belongs to the second."""
    count = max(len(lengths), 1)
    starts = [0, *itertools.accumulate(lengths)][:count]
    first, waiting = 0, list(placed)
    while first < count:
        last, own = first + 1, list[Placed]()
        while waiting and (last >= count or waiting[0].start < starts[last]):
            own.append(waiting.pop(0))
            while last < count and own[-1].end > starts[last]:
                last += 1
        yield first, min(last, len(lengths)), starts[first], own
        first = last


def _characters(written: str) -> list[_Character]:
    return [(one if len(one) == 1 else json.loads(f'"{one}"'), one) for one in _CHARACTER.findall(written)]


def _spliced(old: Sequence[_Character], placed: Sequence[Placed], start: int, is_ascii: bool) -> list[_Character]:
    new: list[_Character] = []
    at = 0
    for one in placed:
        new += old[at : one.start - start]
        new += ((char, json.dumps(char, ensure_ascii=is_ascii)[1:-1]) for char in one.content)
        at = one.end - start
    return [*new, *old[at:]]


def _lines(characters: Sequence[_Character]) -> Iterator[list[_Character]]:
    line: list[_Character] = []
    for one in characters:
        line.append(one)
        if one[0] == "\n":
            yield line
            line = []
    yield line


def _quoted(characters: Sequence[_Character]) -> str:
    return f'"{"".join(written for _, written in characters)}"'
