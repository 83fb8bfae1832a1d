"""The state of a session: settings, open documents, reports."""

from __future__ import annotations

import asyncio
import functools
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.lsp.server import LanguageServer

from memlint import __version__
from memlint.lsp.diagnostics import Report, report_of, uri_of
from memlint.lsp.documents import Document, Places, View, path_of
from memlint.lsp.messages import Answer, Lint
from memlint.lsp.notebooks import NotebookDocument, Unit
from memlint.lsp.scheduler import Crew, Scheduler
from memlint.lsp.settings import SECTION, Settings, settings_of
from memlint.lsp.verifying import Verifier
from memlint.project import decode, is_notebook
from memlint.reading import MAX_SOURCE, read_file

#: the seconds without typing before an analysis, and those after changes on the disk before a new one
TYPING, CHANGES = 0.05, 0.3
#: the notebooks that are synchronised, with all cells: findings number a cell among all
NOTEBOOKS = types.NotebookDocumentSyncOptions(
    [types.NotebookDocumentFilterWithNotebook(types.NotebookDocumentFilterNotebookType("jupyter-notebook", "file"))],
    save=True,
)


class Session(LanguageServer):
    """The state of a session. ``documents``: the open ones, by URI; ``reports``: by the URI of the file or cell."""

    def __init__(self) -> None:
        super().__init__(SECTION, __version__, notebook_document_sync=NOTEBOOKS)
        self.settings = Settings()
        self.documents: dict[str, Unit] = {}
        self.reports: dict[str, Report] = {}
        self.scheduler = Scheduler(Crew(), self._request, self._answered, self.mistake)
        #: whether the client pulls diagnostics, so that none are pushed
        self.pulls = False
        self.initial: Any = None
        self.verifier = Verifier(self, self.look_again)
        self._waiting: dict[str, list[asyncio.Future[None]]] = {}
        #: the document versions of running analyses, by request number
        self._asked: dict[int, int] = {}
        #: whether files may have been added or removed since the last analysis
        self._fresh = True
        #: documents whose report may be outdated, as other files have changed
        self._stale: set[str] = set()
        self._told: set[str] = set()

    def tell(self, text: str, kind: types.MessageType = types.MessageType.Info) -> None:
        """Write a line to the client's log, once."""
        if text not in self._told:
            self._told.add(text)
            self.window_log_message(types.LogMessageParams(kind, f"memlint: {text}"))

    def mistake(self, what: str) -> None:
        """Log an internal error, and go on."""
        self.window_log_message(types.LogMessageParams(types.MessageType.Error, f"memlint: internal error: {what}"))

    def report_server_error(self, error: Exception, source: Any) -> None:
        """Log a protocol error."""
        self.mistake(f"{type(error).__name__}: {error}")

    def configure(self, data: Any) -> None:
        """Apply settings over the initial ones, and report invalid ones."""
        self.settings, problems = settings_of(self.initial, data)
        for problem in problems:
            self.tell(problem, types.MessageType.Warning)

    def look_again(self, delay: float = 0.0) -> None:
        """Analyse the open documents again, as something besides their texts has changed."""
        self._fresh = True
        self._stale.update(self.documents)
        if self._can_refresh:
            self.workspace_diagnostic_refresh(None, lambda _: None)
        for uri, document in self.documents.items():
            if not self.settings.enable:
                self.scheduler.drop(uri)
                self._clear(uri)
            elif document.saved or self.settings.run == "onType":
                self.scheduler.schedule(uri, delay, first=False)

    # ------------------------------------------------------------------------------------------ documents

    def opened(self, params: types.DidOpenTextDocumentParams) -> None:
        one = params.text_document
        path = path_of(one.uri)
        if path is None or is_notebook(path):
            return
        if one.language_id == "python" or path.suffix in (".py", ".pyi", ".pyw"):
            self._open(Document(one.uri, path, one.version, self._places(one.text)))

    def changed(self, params: types.DidChangeTextDocumentParams) -> None:
        document = self.documents.get(params.text_document.uri)
        if isinstance(document, Document):
            document.change(params.content_changes, params.text_document.version, self._encoding)
            self._changed(document.uri)

    def saved(self, params: types.DidSaveTextDocumentParams) -> None:
        self._saved(params.text_document.uri)

    def closed(self, params: types.DidCloseTextDocumentParams) -> None:
        self._close(params.text_document.uri)

    def notebook_opened(self, params: types.DidOpenNotebookDocumentParams) -> None:
        one = params.notebook_document
        path = path_of(one.uri)
        if path is not None and is_notebook(path):
            document = NotebookDocument(one.uri, path, list(one.cells))
            document.open_texts(params.cell_text_documents, self._encoding)
            self._open(document)

    def notebook_changed(self, params: types.DidChangeNotebookDocumentParams) -> None:
        document = self.documents.get(params.notebook_document.uri)
        if not isinstance(document, NotebookDocument):
            return
        before = {view.uri for view in document.views.values()}
        document.change(params.change, self._encoding)
        for gone in before - {view.uri for view in document.views.values()}:
            self._withdraw(gone)
        self._changed(document.uri)

    def notebook_saved(self, params: types.DidSaveNotebookDocumentParams) -> None:
        self._saved(params.notebook_document.uri)

    def notebook_closed(self, params: types.DidCloseNotebookDocumentParams) -> None:
        self._close(params.notebook_document.uri)

    def watched(self, params: types.DidChangeWatchedFilesParams) -> None:
        """Handle files that other programs have written. (Open files have the client's contents.)"""
        if any(
            change.uri not in self.documents or change.type != types.FileChangeType.Changed for change in params.changes
        ):
            self.look_again(CHANGES)

    def _open(self, document: Unit) -> None:
        self.documents[document.uri] = document
        self._schedule(document.uri, 0.0)

    def _changed(self, uri: str) -> None:
        if self.settings.run == "onType":
            self._schedule(uri, TYPING)
        else:
            self.scheduler.drop(uri)
            self._release(uri)

    def _saved(self, uri: str) -> None:
        """Handle a save: other documents that may import the file are analysed again after it."""
        if uri in self.documents:
            self.documents[uri].saved = True
            self.look_again()
            self._schedule(uri, 0.0)

    def _close(self, uri: str) -> None:
        if uri in self.documents:
            self.scheduler.drop(uri)
            self._clear(uri)
            self._stale.discard(uri)
            del self.documents[uri]

    def owner(self, uri: str) -> Unit | None:
        """The unit of analysis of a text: the file, or the notebook of a cell."""
        return self.documents.get(uri) or next(
            (one for one in self.documents.values() if isinstance(one, NotebookDocument) and uri in one.texts), None
        )

    def view(self, path: str, cell: int | None) -> View | None:
        """The text of a file or a cell, as open or on the disk; None if unknown."""
        for document in self.documents.values():
            if str(document.path) == path:
                return document.views.get(cell)
        if cell is not None:  # positions in a closed notebook are unknown
            return View(uri_of(path), None, self._places(""))
        try:
            return View(uri_of(path), None, self._places(decode(read_file(path, MAX_SOURCE))))
        except (OSError, SyntaxError, LookupError, UnicodeError):
            return None

    # ------------------------------------------------------------------------------------------ analyses

    async def settle(self, uri: str, *, complete: bool = False) -> None:
        """Wait until the current text is analysed. Returns at once if the analysis waits for a save. ``complete``: wait
        for the complete answer."""
        unit = self.owner(uri)
        if unit is None or not self.settings.enable:
            return
        partial = complete and self._is_partial(uri)
        if (self.is_current(uri) and not partial) or (self.settings.run == "onSave" and not unit.saved):
            return
        if unit.uri not in self._waiting and not self.scheduler.has(unit.uri):
            self.scheduler.schedule(unit.uri, 0.0)
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(unit.uri, []).append(future)
        await future
        if complete and self._is_partial(uri):
            await self.settle(uri, complete=True)

    def _is_partial(self, uri: str) -> bool:
        """Whether a text's report is a partial one."""
        report = self.reports.get(uri)
        return report is not None and report.answer.partial

    def is_current(self, uri: str) -> bool:
        """Whether a text's report is about its current content."""
        report, unit = self.reports.get(uri), self.owner(uri)
        if report is None or unit is None:
            return False
        return report.version == unit.version and unit.uri not in self._stale

    def _schedule(self, uri: str, delay: float) -> None:
        if self.settings.enable:
            self.scheduler.schedule(uri, delay)

    def _request(self, uri: str, number: int, quick: bool) -> Lint | None:
        document = self.documents.get(uri)
        if document is None or not self.settings.enable:
            return None
        self._asked[number] = document.version
        fresh, self._fresh = self._fresh, False
        path, cwd, proof = str(document.path), self.cwd(document.path), self.verifier.evidence
        quick = quick and (self._can_refresh or not self.pulls)
        texts, overrides = self.texts(), self.settings.overrides
        return Lint(number, path, cwd, texts, overrides, fresh=fresh, quick=quick, evidence=proof)

    def _answered(self, uri: str, request: Lint, answer: Answer) -> None:
        version, unit = self._asked.pop(request.number), self.documents.get(uri)
        self.log(answer)
        if unit is None or unit.version != version:
            return
        # traces of several findings often lead through the same files
        views = functools.cache(self.view)
        first = True
        for cell, view in unit.views.items():
            report = report_of(answer, version, str(unit.path), cell, view, views, first=first)
            before, first = self.reports.get(view.uri), False
            self.reports[view.uri] = report
            if report.says_as(before) and (cell is not None or not request.quick):
                continue
            if not self.pulls:
                self._publish(view.uri, report.diagnostics, view.version)
            elif before is not None and before.answer.partial and before.version == version:
                self.workspace_diagnostic_refresh(None, lambda _: None)  # (it has pulled the partial report)
        if not self.scheduler.has(uri):
            self._stale.discard(uri)
        self._release(uri)

    @property
    def _can_refresh(self) -> bool:
        """Whether the client pulls diagnostics, and does so again if it is asked to."""
        workspace = self.client_capabilities.workspace
        diagnostics = None if workspace is None else workspace.diagnostics
        return self.pulls and diagnostics is not None and diagnostics.refresh_support is True

    def log(self, answer: Answer) -> None:
        """Write the problems and errors of an answer to the client's log."""
        if answer.mistake:
            self.mistake(answer.mistake)
        if answer.error:
            self.tell(answer.error, types.MessageType.Error)
        for problem in answer.problems:
            self.tell(problem, types.MessageType.Warning)
        for notice in answer.notices:
            self.tell(notice)

    def _clear(self, uri: str) -> None:
        """Withdraw the diagnostics of a document."""
        for view in self.documents[uri].views.values():
            self._withdraw(view.uri)
        self._release(uri)

    def _withdraw(self, uri: str) -> None:
        """Withdraw the diagnostics of a text."""
        if self.reports.pop(uri, None) is not None and not self.pulls:
            self._publish(uri, (), None)

    def _publish(self, uri: str, found: tuple[types.Diagnostic, ...], version: int | None) -> None:
        self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, list(found), version))

    def _release(self, uri: str) -> None:
        """Release the requests that wait for a report."""
        for future in self._waiting.pop(uri, ()):
            if not future.done():
                future.set_result(None)

    def texts(self) -> dict[str, bytes]:
        """The contents of the open files, by absolute path."""
        return {str(one.path): one.content() for one in self.documents.values()}

    def cwd(self, path: Path) -> str:
        """The folder that a file's paths are relative to: the innermost workspace folder around it, else its own
        folder."""
        folders = [place for uri in self.workspace.folders if (place := path_of(uri)) and path.is_relative_to(place)]
        root = path_of(self.workspace.root_uri or "")
        if not folders and root is not None and path.is_relative_to(root):
            folders = [root]
        return str(max(folders, key=lambda place: len(place.parts), default=path.parent))

    @property
    def _encoding(self) -> str:
        return str(getattr(self.workspace.position_encoding, "value", self.workspace.position_encoding))

    def _places(self, text: str) -> Places:
        return Places(text, self._encoding)
