"""A notebook read as one module: its code cells in order, a blank line between two."""

from __future__ import annotations

import codecs
import json
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from memlint.project.ipython import Mask, masks_of, parse_error, python_of_cell
from memlint.project.old_syntax import CHECKED_AS_OLD, modern
from memlint.reading import MAX_SOURCE

#: the text between two cells: the end of the last line of the first, and a line that belongs to none
BETWEEN = "\n\n"


class Cell(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A code cell. ``number``: among all cells of the notebook, from 1. ``line``: its first line in the module, from 1.
    ``start``, ``end``: its offsets there, without the text between cells. ``indent``: the blanks that IPython removes
    from its lines, by which columns of the module are smaller."""

    number: int
    line: int
    start: int
    end: int
    indent: int = 0


class CellProblem(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """Why a cell does not parse; line and column count from 1, in the module. ``parses``: the rest of it was parsed."""

    message: str
    line: int
    column: int
    parses: bool = False


class Notebook(msgspec.Struct, frozen=True):
    """The content of a notebook. ``text``: its module. ``foreign``: its language, if that is not Python. ``rewritten``:
    a cell has an older grammar."""

    text: str
    cells: tuple[Cell, ...] = ()
    masks: tuple[Mask, ...] = ()
    problems: tuple[CellProblem, ...] = ()
    foreign: str = ""
    rewritten: bool = False


class NotebookError(ValueError):
    """Why a file is no readable notebook, a clause."""


def read_notebook(raw: bytes) -> Notebook:
    """Read a notebook. Raises NotebookError for an invalid one."""
    notebook = _decoded(raw)
    foreign = language(notebook)
    if foreign:
        return Notebook("", foreign=foreign)
    return _joined([(number, source) for number, source in code_cells(notebook) if source is not None])


def cell_texts(raw: bytes) -> dict[int, str]:
    """The unchanged code cells of a notebook, by number. Raises NotebookError."""
    return {number: source for number, source in code_cells(_decoded(raw)) if source is not None}


def cell_at(cells: Sequence[Cell], line: int) -> Cell | None:
    """The cell that contains a line of the module (or precedes it); None for a file without cells."""
    at = bisect_right(cells, line, key=lambda cell: cell.line)
    return cells[at - 1] if at else None


def code_cells(notebook: Mapping[str, Any]) -> Iterator[tuple[int, str | None]]:
    """The code cells, numbered among all, with None for a source in another language. Cells in worksheets (formats
    before 4) are included."""
    sheets = notebook.get("worksheets") or ()
    cells = [*(notebook.get("cells") or ()), *(cell for sheet in sheets for cell in sheet.get("cells") or ())]
    for number, cell in enumerate(cells, 1):
        if not isinstance(cell, dict):
            raise NotebookError(f"not a notebook: cell {number} is no object")
        if cell.get("cell_type") == "code":
            source = cell.get("source", cell.get("input", ""))
            if not isinstance(source, str):
                if not isinstance(source, list) or not all(isinstance(part, str) for part in source):
                    raise NotebookError(f"not a notebook: the source of cell {number} is no text")
                source = "".join(source)
            yield number, source if _is_python(cell) else None


def language(notebook: Mapping[str, Any]) -> str:
    """The language of a notebook's kernel; "" for Python, or if unknown."""
    metadata = notebook.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    kernel, info = metadata.get("kernelspec"), metadata.get("language_info")
    kernel, info = (one if isinstance(one, dict) else {} for one in (kernel, info))
    said = kernel.get("language") or info.get("name") or {"ir": "R"}.get(str(kernel.get("name", "")).lower(), "")
    said = str(said or ("julia" if str(kernel.get("name", "")).startswith("julia") else ""))
    return "" if "python" in said.lower() else said


def _is_python(cell: Mapping[str, Any]) -> bool:
    """Whether a code cell is in Python: editors and old formats may declare another language for it."""
    metadata = cell.get("metadata")
    editor = metadata.get("vscode") if isinstance(metadata, dict) else None
    said = cell.get("language") or (editor.get("languageId") if isinstance(editor, dict) else None) or "python"
    return "python" in str(said).lower()


class _Document(msgspec.Struct):
    """The decoded parts of a notebook; outputs and attachments, most of its bytes, are skipped."""

    cells: list[_Cell] | None = None
    worksheets: list[_Sheet] | None = None
    metadata: Any = None


class _Sheet(msgspec.Struct):
    cells: list[_Cell] | None = None


class _Cell(msgspec.Struct, omit_defaults=True):
    cell_type: Any = ""
    source: Any = msgspec.UNSET
    input: Any = msgspec.UNSET
    language: Any = None
    metadata: Any = None


def _decoded(raw: bytes) -> Mapping[str, Any]:
    raw = raw.removeprefix(codecs.BOM_UTF8)
    if not raw.strip():
        return {"cells": []}  # a place holder, as an empty module is
    try:
        notebook = msgspec.to_builtins(msgspec.json.decode(raw, type=_Document))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        notebook = _by_python(raw)  # accepts what other tools write, and describes errors
    if not isinstance(notebook, dict):
        raise NotebookError("not a notebook: its JSON is no object")
    sheets = notebook.get("worksheets") or []
    are_objects = isinstance(sheets, list) and all(isinstance(sheet, dict) for sheet in sheets)
    groups = [notebook.get("cells"), *(sheet.get("cells") for sheet in sheets)] if are_objects else [0]
    if all(group is None for group in groups) or not all(group is None or isinstance(group, list) for group in groups):
        raise NotebookError("not a notebook: it has no list of cells")
    return notebook


def _by_python(raw: bytes) -> Any:
    try:
        return json.loads(raw.decode())
    except UnicodeDecodeError as error:
        raise NotebookError(f"not a notebook: byte 0x{raw[error.start]:02x} at {error.start} is not UTF-8") from None
    except json.JSONDecodeError as error:
        said = f"{error.msg[:1].lower()}{error.msg[1:]} in line {error.lineno}, column {error.colno}"
        raise NotebookError(f"not a notebook: its JSON is broken: {said}") from None
    except (ValueError, RecursionError) as error:
        raise NotebookError(f"not a notebook: its JSON cannot be read: {error}") from None


def _joined(sources: Sequence[tuple[int, str]]) -> Notebook:
    """The module made of cells."""
    if sum(len(source) for _, source in sources) > MAX_SOURCE:
        raise NotebookError(f"the code of its cells is larger than {MAX_SOURCE >> 20} MiB")
    texts: list[str] = []
    cells: list[Cell] = []
    masks: list[Mask] = []
    problems: list[CellProblem] = []
    line, start, rewritten = 1, 0, False
    for number, source in sources:
        text, indent, problem = _python(source)
        if problem is not None:
            problems.append(msgspec.structs.replace(problem, line=problem.line + line - 1))
            rewritten = rewritten or problem.parses
        cells.append(Cell(number, line, start, start + len(source), indent))
        masks += masks_of(source, text, start)
        texts.append(text)
        line += _newlines(source) + 2
        start += len(source) + len(BETWEEN)
    return Notebook(BETWEEN.join(texts), tuple(cells), tuple(masks), tuple(problems), rewritten=rewritten)


def _python(source: str) -> tuple[str, int, CellProblem | None]:
    """A cell as Python of the same length; the blanks removed from its lines; and its error."""
    dedented, indent = _dedented(source)
    masked = python_of_cell(dedented)
    error = parse_error(masked)
    if error is None:
        return masked, indent, None
    problem = _problem(error, indent)
    new = modern(masked)
    if new is not masked:
        return new, indent, msgspec.structs.replace(problem, message=problem.message + CHECKED_AS_OLD, parses=True)
    return "".join(" " if char not in "\r\n" else char for char in source), indent, problem


def _problem(error: SyntaxError | ValueError, indent: int) -> CellProblem:
    if isinstance(error, SyntaxError):
        return CellProblem(error.msg, error.lineno or 1, max(error.offset or 1, 1) + indent)
    return CellProblem(str(error), 1, 1)


def _dedented(source: str) -> tuple[str, int]:
    """A cell without the indentation of its first line of code, as IPython runs it; the length of each line is
    unchanged."""
    first = next((line for line in source.splitlines() if line.strip()), "")
    indent = first[: len(first) - len(first.lstrip(" \t"))]
    if not indent:
        return source, 0
    lines = source.splitlines(keepends=True)
    return "".join(_moved(line, indent) for line in lines), len(indent)


def _moved(line: str, indent: str) -> str:
    if not line.startswith(indent):
        return line
    bare = line.rstrip("\r\n")
    return bare[len(indent) :] + " " * len(indent) + line[len(bare) :]


def _newlines(text: str) -> int:
    """The number of line ends in a text, as Python counts them."""
    return text.count("\n") + (text.count("\r") - text.count("\r\n") if "\r" in text else 0)
