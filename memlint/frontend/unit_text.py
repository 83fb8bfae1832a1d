"""The text of one unit of a file, and the lines that it spans."""

from __future__ import annotations

import ast
import warnings

import msgspec

from memlint.patterns import lazy_pattern
from memlint.remembered import Remembered

_LINE = lazy_pattern(r"[^\r\n]*(?:\r\n?|\n|\Z)")


class UnitText(msgspec.Struct, frozen=True):
    """The source of one unit.

    ``name`` is the top-level definition's name, "" for the module's own statements, which are always the
    unit of index 0: the whole source with the other units' lines blanked. ``start_line`` is the line of the
    file (from 1) at which ``text`` starts; a definition's text starts at its first decorator.
    """

    name: str
    index: int
    start_line: int
    text: str


class Extent(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A top-level definition and its lines in the file, from 1, the last one included."""

    name: str
    first_line: int
    last_line: int


@Remembered
def host_tree(text: str) -> ast.Module | None:
    """The host's syntax tree of ``text``; None if it cannot parse it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def cut(text: str, definitions: tuple[Extent, ...]) -> tuple[UnitText, ...]:
    """The units of ``text`` with these top-level definitions."""
    if "\r" not in text and "\\\n" not in text:
        return _cut_plain(text, definitions)
    lines = _LINE.findall(text)
    own = lines.copy()
    units: list[UnitText] = []
    for each in definitions:
        first, last = each.first_line - 1, each.last_line
        if _continues(lines, first - 1) or _continues(lines, last - 1):
            continue
        units.append(UnitText(each.name, len(units) + 1, each.first_line, "".join(lines[first:last])))
        for number in range(first, last):
            # keeps the newline of each line: \n after a \r would not be a line of its own
            own[number] = lines[number][len(lines[number].rstrip("\r\n")) :]
    return (UnitText("", 0, 1, "".join(own)), *units)


def _cut_plain(text: str, definitions: tuple[Extent, ...]) -> tuple[UnitText, ...]:
    """As `cut`, of a source whose lines all end in line feeds and are never joined."""
    lines = text.split("\n")
    own: list[str] = []
    units: list[UnitText] = []
    done = 0
    for each in definitions:
        first, last = each.first_line - 1, each.last_line
        ends = "\n" if last < len(lines) else ""
        units.append(UnitText(each.name, len(units) + 1, each.first_line, "\n".join(lines[first:last]) + ends))
        own += lines[done:first]
        own += [""] * (last - first)
        done = last
    own += lines[done:]
    return (UnitText("", 0, 1, "\n".join(own)), *units)


def _continues(lines: list[str], number: int) -> bool:
    """Whether a backslash may join the line to the next."""
    return number >= 0 and lines[number].rstrip("\r\n").endswith("\\")
