"""The open notebooks: cells in the client's view, and the equivalent file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
from lsprotocol import types

from memlint.lsp.documents import Document, Encoding, Places, View


class NotebookDocument(msgspec.Struct):
    """One open notebook. ``cells``: all in order, including text cells, so that numbers are the file's; ``texts``:
    their contents by URI; ``languages``: their languages. ``version``: the number of changes (clients may restart their
    own count)."""

    uri: str
    path: Path
    cells: list[types.NotebookCell]
    version: int = 1
    saved: bool = True
    texts: dict[str, Document] = {}
    languages: dict[str, str] = {}

    @property
    def views(self) -> dict[int | None, View]:
        """The texts of its code cells by number."""
        found: dict[int | None, View] = {}
        for number, cell in enumerate(self.cells, 1):
            document = self.texts.get(cell.document)
            if document is not None and cell.kind == types.NotebookCellKind.Code:
                found[number] = View(document.uri, document.version, document.places)
        return found

    def content(self) -> bytes:
        """The notebook as a file with the parts that are read, and nothing else."""
        cells = [self._cell(cell) for cell in self.cells]
        return msgspec.json.encode({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})

    def open_texts(self, items: Iterable[types.TextDocumentItem], encoding: Encoding) -> None:
        for item in items:
            self.texts[item.uri] = Document(item.uri, self.path, item.version, Places(item.text, encoding))
            self.languages[item.uri] = item.language_id

    def change(self, change: types.NotebookDocumentChangeEvent, encoding: Encoding) -> None:
        """Apply the client's changes: first to the list of cells, then to their contents. Changes to unknown cells are
        ignored."""
        self.version, self.saved = self.version + 1, False
        cells = change.cells
        if cells is None:
            return
        if cells.structure is not None:
            array = cells.structure.array
            self.cells[array.start : array.start + array.delete_count] = array.cells or ()
            for closed in cells.structure.did_close or ():
                self.texts.pop(closed.uri, None)
            self.open_texts(cells.structure.did_open or (), encoding)
        self._replace(cells.data or ())
        for text in cells.text_content or ():
            document = self.texts.get(text.document.uri)
            if document is not None:
                document.change(text.changes, text.document.version, encoding)

    def _replace(self, cells: Sequence[types.NotebookCell]) -> None:
        """Replace other data (kind, metadata) of cells."""
        data = {cell.document: cell for cell in cells}
        self.cells = [data.get(cell.document, cell) for cell in self.cells]

    def _cell(self, cell: types.NotebookCell) -> dict[str, Any]:
        document = self.texts.get(cell.document)
        source = "" if document is None else document.text.encode("utf-8", "replace").decode()
        if cell.kind != types.NotebookCellKind.Code:
            return {"cell_type": "markdown", "metadata": {}, "source": ""}
        language = self.languages.get(cell.document, "python")
        return {"cell_type": "code", "metadata": {}, "source": source, "language": language}


#: the unit of analysis
Unit = Document | NotebookDocument
