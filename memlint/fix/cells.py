"""Edits on modules that differ from their files: notebooks, and files with lines for IPython alone."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence

from memlint.finding import Edit, Finding, Span
from memlint.fix.edits import Placed, place, splice
from memlint.fix.files import encode
from memlint.fix.json_strings import rewritten
from memlint.fix.spans import EditError
from memlint.patterns import NEWLINE, lazy_pattern
from memlint.project import Cell, NotebookError, Source, decode, read_notebook

_LAST = lazy_pattern(r"(?:\r\n|\r|\n)\Z")


def module_place(cells: Sequence[Cell], place: Finding) -> tuple[int, int]:
    """The line and column of a finding in its module."""
    span = module_span(cells, place.cell, Span(place.line, place.column, place.line, place.column))
    return span.line, span.column


def module_span(cells: Sequence[Cell], number: int | None, span: Span) -> Span:
    """A span of a cell in the module; unchanged for a file without cells. Raises EditError if there is no such cell."""
    if number is None:
        return span
    cell = next((cell for cell in cells if cell.number == number), None)
    if cell is None:
        raise EditError(f"there is no cell {number}")
    above, left = cell.line - 1, cell.indent
    return Span(span.line + above, span.column - left, span.end_line + above, span.end_column - left)


def place_in(source: Source, edits: Iterable[Edit]) -> tuple[Placed, ...]:
    """The edits of one file by offsets in its module. Raises EditError, also for lines for IPython alone, which are
    never edited, and for an edit across two cells."""
    moved = [Edit(edit.path, module_span(source.cells, edit.cell, edit.span), edit.content) for edit in edits]
    placed = place(source.text, moved)
    for one in placed:
        _check_masks(source, one)
    return tuple(_within_cell(source, one) for one in placed) if source.cells else placed


def write_back(source: Source, raw: bytes, placed: Sequence[Placed]) -> bytes:
    """The bytes of a file (``raw``) after edits on its module. Raises EditError."""
    if not source.cells:
        return encode(raw, splice(source.original, placed))
    edits: dict[int, list[Placed]] = {}
    for one in placed:
        cell = _cell_of(source, one.start)
        edits.setdefault(cell.number, []).append(Placed(one.start - cell.start, one.end - cell.start, one.content))
    return rewritten(raw, edits)


def cells_after(source: Source, raw: bytes, text: str) -> tuple[Cell, ...]:
    """The cells of a notebook that was edited to the module ``text``. Raises EditError if it was not."""
    if not source.cells:
        return ()
    try:
        found = read_notebook(raw)
    except NotebookError as error:
        raise EditError(str(error)) from None
    if found.text != text:
        raise EditError("a cell would no longer parse on its own")
    return found.cells


def is_as_read(source: Source, raw: bytes) -> bool:
    """Whether these are the bytes that a source was read from. Raises EditError if they cannot be written back."""
    if source.cells:
        return write_back(source, raw, ()) == raw and read_notebook(raw).text == source.text
    encode(raw, source.original)
    return decode(raw) == source.original


def _check_masks(source: Source, one: Placed) -> None:
    starts = [mask.start for mask in source.masks]
    for mask in source.masks[max(bisect_left(starts, one.start) - 1, 0) : bisect_right(starts, one.end)]:
        end = mask.start + len(mask.text)
        if one.start == one.end:  # an insertion before or after a line does not change it
            above = one.start == mask.start and NEWLINE.search(one.content[-1:]) is not None
            below = one.start == end and NEWLINE.match(one.content) is not None
            touches = mask.start <= one.start <= end and not above and not below
        else:
            touches = one.start < end and mask.start < one.end
        if touches:
            raise EditError("it would change a line that only IPython runs")


def _cell_of(source: Source, offset: int) -> Cell:
    return source.cells[max(bisect_right(source.cells, offset, key=lambda cell: cell.start) - 1, 0)]


def _within_cell(source: Source, one: Placed) -> Placed:
    """An edit restricted to its cell: without the newline that its last line lacks. Raises EditError if another cell is
    edited as well."""
    cell = _cell_of(source, one.start)
    if one.end <= cell.end:
        return one
    if one.end > cell.end + 1:
        raise EditError("it would change two cells at once")
    own = source.text[cell.start : cell.end]
    content = one.content[: -len(last[0])] if (last := _LAST.search(one.content)) is not None else one.content
    if one.start > cell.end:  # on the line after the last one
        first = "" if not own or own.endswith(("\n", "\r")) else "\r\n" if "\r\n" in own else "\n"
        return Placed(cell.end, cell.end, first + content)
    start = one.start
    if not content and (before := _LAST.search(source.text, cell.start, start)) is not None:
        start = before.start()
    return Placed(start, cell.end, content)
