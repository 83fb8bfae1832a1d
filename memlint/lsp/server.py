"""The server: what a client says, and what it is told."""

from __future__ import annotations

import asyncio
import functools
import os
import sys
import traceback
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

from lsprotocol import types
from pygls.lsp.server import LanguageServer

from memlint import __version__
from memlint.lsp import actions
from memlint.lsp.diagnostics import Report, report_of
from memlint.lsp.documents import Document, Places, path_of
from memlint.lsp.hover import hover
from memlint.lsp.messages import Answer, Fix, Lint
from memlint.lsp.scheduler import Crew, Scheduler
from memlint.lsp.settings import SECTION, Settings, section_of, settings_of
from memlint.project import decode
from memlint.reading import MAX_SOURCE, read_file

#: seconds in which nobody types before an analysis begins, and after which files that changed on the disk are read
TYPING, CHANGES = 0.1, 0.3
#: the files of a project that change what is found in others
WATCHED = ("**/*.{py,pyi,pyw,ipynb}", "**/{pyproject,memlint}.toml")
_P = TypeVar("_P")
_R = TypeVar("_R")


class Server(LanguageServer):
    """The state of a session."""

    def __init__(self) -> None:
        super().__init__(SECTION, __version__)
        self.settings = Settings()
        self.documents: dict[str, Document] = {}
        self.reports: dict[str, Report] = {}
        self.scheduler = Scheduler(Crew(), self._request, self._answered, self.mistake)
        #: whether the client asks for diagnostics, so that it is sent none
        self._pulls = False
        self._initial: Any = None
        self._waiting: dict[str, list[asyncio.Future[None]]] = {}
        #: the versions that analyses which run are of, by the number of the request
        self._asked: dict[int, int] = {}
        #: whether files may have come or gone since the last analysis
        self._fresh = True
        #: documents whose report may not be true any more, since other files changed
        self._stale: set[str] = set()
        self._told: set[str] = set()

    # ------------------------------------------------------------------------------------------ the client

    def begin(self, params: types.InitializeParams) -> None:
        """Note what the client can do and wants."""
        document = params.capabilities.text_document
        self._pulls = document is not None and document.diagnostic is not None
        self._initial = params.initialization_options
        self.configure(None)

    async def begun(self, _: types.InitializedParams) -> None:
        """Ask for what the client has to be asked for."""
        workspace = self.client_capabilities.workspace
        watched = None if workspace is None else workspace.did_change_watched_files
        if watched is not None and watched.dynamic_registration:
            options = types.DidChangeWatchedFilesRegistrationOptions([types.FileSystemWatcher(one) for one in WATCHED])
            registration = types.Registration("memlint-files", types.WORKSPACE_DID_CHANGE_WATCHED_FILES, options)
            await self.client_register_capability_async(types.RegistrationParams([registration]))

    async def configured(self, params: types.DidChangeConfigurationParams) -> None:
        """Take new settings; a client that sends none with the message is asked for them."""
        found = section_of(params.settings)
        workspace = self.client_capabilities.workspace
        if found is None and workspace is not None and workspace.configuration:
            item = types.ConfigurationItem(section=SECTION)
            answer = await self.workspace_configuration_async(types.ConfigurationParams([item]))
            found = answer[0] if answer else None
        if section_of(found) is not None:  # (some send an empty table as they begin, which takes nothing back)
            self.configure(found)
            self.look_again()

    def configure(self, data: Any) -> None:
        """Take settings over those that the client began with, and say which of them are wrong."""
        self.settings, problems = settings_of(self._initial, data)
        for problem in problems:
            self.tell(problem, types.MessageType.Warning)

    def look_again(self, delay: float = 0.0) -> None:
        """Something other than a text has changed: what was found may not be true any more."""
        self._fresh = True
        self._stale.update(self.documents)
        workspace = self.client_capabilities.workspace
        refresh = None if workspace is None else workspace.diagnostics
        if self._pulls and refresh is not None and refresh.refresh_support:
            self.workspace_diagnostic_refresh(None, lambda _: None)
        for uri, document in self.documents.items():
            if not self.settings.enable:
                self.scheduler.drop(uri)
                self._clear(uri)
            elif document.saved or self.settings.run == "onType":
                self.scheduler.schedule(uri, delay, first=False)

    def tell(self, text: str, kind: types.MessageType = types.MessageType.Info) -> None:
        """A line of the client's log, once."""
        if text not in self._told:
            self._told.add(text)
            self.window_log_message(types.LogMessageParams(kind, f"memlint: {text}"))

    def mistake(self, what: str) -> None:
        """A mistake of ours is something for the log, and the end of nothing."""
        self.window_log_message(types.LogMessageParams(types.MessageType.Error, f"memlint: internal error: {what}"))

    def report_server_error(self, error: Exception, source: Any) -> None:
        """What the protocol could make nothing of."""
        self.mistake(f"{type(error).__name__}: {error}")

    # ------------------------------------------------------------------------------------------ documents

    def opened(self, params: types.DidOpenTextDocumentParams) -> None:
        one = params.text_document
        path = path_of(one.uri)
        if path is None or (one.language_id != "python" and path.suffix not in (".py", ".pyi", ".pyw")):
            return
        self.documents[one.uri] = Document(one.uri, path, one.version, self._places(one.text))
        self._schedule(one.uri, 0.0)

    def changed(self, params: types.DidChangeTextDocumentParams) -> None:
        uri = params.text_document.uri
        if uri in self.documents:
            self.documents[uri].change(params.content_changes, params.text_document.version, self._encoding)
            if self.settings.run == "onType":
                self._schedule(uri, TYPING)
            else:
                self.scheduler.drop(uri)
                self._release(uri)

    def saved(self, params: types.DidSaveTextDocumentParams) -> None:
        """What others import is now what was written; they are looked at again after this one."""
        uri = params.text_document.uri
        if uri in self.documents:
            self.documents[uri].saved = True
            self.look_again()
            self._schedule(uri, 0.0)

    def closed(self, params: types.DidCloseTextDocumentParams) -> None:
        uri = params.text_document.uri
        if self.documents.pop(uri, None) is not None:
            self.scheduler.drop(uri)
            self._clear(uri)
            self._stale.discard(uri)

    def watched(self, params: types.DidChangeWatchedFilesParams) -> None:
        """Files were written by others. (What an open file holds is said by the client alone.)"""
        if any(
            change.uri not in self.documents or change.type != types.FileChangeType.Changed for change in params.changes
        ):
            self.look_again(CHANGES)

    # ------------------------------------------------------------------------------------------ what was found

    async def pull(self, params: types.DocumentDiagnosticParams) -> types.DocumentDiagnosticReport:
        """What is found in a document as it is now, once it is known."""
        uri = params.text_document.uri
        await self.settle(uri)
        report = self.reports.get(uri)
        if report is None:
            return types.RelatedFullDocumentDiagnosticReport([])
        if params.previous_result_id == report.identity:
            return types.RelatedUnchangedDocumentDiagnosticReport(report.identity)
        return types.RelatedFullDocumentDiagnosticReport(list(report.diagnostics), result_id=report.identity)

    async def settle(self, uri: str) -> None:
        """Wait until a document is analysed as it is; where that waits for it to be saved, do not."""
        document = self.documents.get(uri)
        if document is None or not self.settings.enable:
            return
        if self.is_current(uri) or (self.settings.run == "onSave" and not document.saved):
            return
        if uri not in self._waiting and not self.scheduler.has(uri):
            self.scheduler.schedule(uri, 0.0)
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(uri, []).append(future)
        await future

    def is_current(self, uri: str) -> bool:
        """Whether a document's report is of its text as it is."""
        report, document = self.reports.get(uri), self.documents.get(uri)
        return (
            report is not None
            and document is not None
            and report.version == document.version
            and (uri not in self._stale)
        )

    def hovered(self, params: types.HoverParams) -> types.Hover | None:
        uri = params.text_document.uri
        return hover(self.reports[uri], params.position) if self.is_current(uri) else None

    async def acted(self, params: types.CodeActionParams) -> list[types.CodeAction]:
        """The actions at a place. Those that take an analysis of their own are made when they are asked for."""
        uri, only = params.text_document.uri, params.context.only
        await self.settle(uri)
        if not self.is_current(uri):
            return []
        report, found = self.reports[uri], list[types.CodeAction]()
        desk = self._desk(self.documents[uri], report)
        if actions.is_wanted(types.CodeActionKind.QuickFix, only):
            found += await asyncio.to_thread(lambda: list(actions.quick_fixes(desk, params.range)))
        if actions.is_wanted(actions.FIX_ALL, only) and actions.has_safe_fixes(report):
            action = actions.fix_all({"uri": uri})
            found.append(action if self._resolves or not only else await self.resolved(action))
        return [one for one in found if one.edit is not None or self._resolves]

    async def resolved(self, action: types.CodeAction) -> types.CodeAction:
        """An action with its edits."""
        uri = action.data.get("uri") if isinstance(action.data, dict) else None
        document = self.documents.get(uri) if isinstance(uri, str) else None
        if document is None or action.kind != actions.FIX_ALL:
            return action
        places, version = document.places, document.version
        texts, cwd = self._texts(), self._cwd(document.path)
        answer = await self.scheduler.fix(
            lambda number: Fix(number, str(document.path), cwd, texts, self.settings.overrides)
        )
        self._log(answer)
        if answer.fixed is not None and document.version == version:
            desk = self._desk(document, self.reports[document.uri])
            edits = actions.replaced(places, decode(answer.fixed))
            action.edit = desk.edit({str(document.path): edits})
        return action

    # ------------------------------------------------------------------------------------------ analyses

    def _schedule(self, uri: str, delay: float) -> None:
        if self.settings.enable:
            self.scheduler.schedule(uri, delay)

    def _request(self, uri: str, number: int) -> Lint | None:
        document = self.documents.get(uri)
        if document is None or not self.settings.enable:
            return None
        self._asked[number] = document.version
        fresh, self._fresh = self._fresh, False
        cwd = self._cwd(document.path)
        return Lint(number, str(document.path), cwd, self._texts(), self.settings.overrides, fresh)

    def _answered(self, uri: str, request: Lint, answer: Answer) -> None:
        version, document = self._asked.pop(request.number), self.documents.get(uri)
        self._log(answer)
        if document is None or document.version != version:
            return
        # (many traces lead through few files)
        texts = functools.cache(self._text)
        report = report_of(answer, version, document.path, document.places, texts)
        self.reports[uri] = report
        if not self.scheduler.has(uri):
            self._stale.discard(uri)
        if not self._pulls:
            self._publish(uri, report.diagnostics, version)
        self._release(uri)

    def _log(self, answer: Answer) -> None:
        if answer.mistake:
            self.mistake(answer.mistake)
        if answer.error:
            self.tell(answer.error, types.MessageType.Error)
        for problem in answer.problems:
            self.tell(problem, types.MessageType.Warning)
        for notice in answer.notices:
            self.tell(notice)

    def _clear(self, uri: str) -> None:
        """Take back what was said of a document."""
        if self.reports.pop(uri, None) is not None and not self._pulls:
            self._publish(uri, (), None)
        self._release(uri)

    def _publish(self, uri: str, found: tuple[types.Diagnostic, ...], version: int | None) -> None:
        self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, list(found), version))

    def _release(self, uri: str) -> None:
        """Let go on who waits for a report."""
        for future in self._waiting.pop(uri, ()):
            if not future.done():
                future.set_result(None)

    @property
    def _encoding(self) -> str:
        return str(getattr(self.workspace.position_encoding, "value", self.workspace.position_encoding))

    @property
    def _resolves(self) -> bool:
        """Whether the client asks for the edits of an action when it is chosen."""
        document = self.client_capabilities.text_document
        action = None if document is None else document.code_action
        support = None if action is None else action.resolve_support
        return support is not None and "edit" in support.properties

    def _desk(self, document: Document, report: Report) -> actions.Desk:
        workspace = self.client_capabilities.workspace
        edits = None if workspace is None else workspace.workspace_edit
        opened = {str(one.path): one for one in self.documents.values()}
        return actions.Desk(document, report, self._text, opened, bool(edits and edits.document_changes))

    def _texts(self) -> dict[str, bytes]:
        return {str(one.path): one.content() for one in self.documents.values()}

    def _places(self, text: str) -> Places:
        return Places(text, self._encoding)

    def _text(self, path: str) -> Places | None:
        """The text of a file, as open or on the disk."""
        for document in self.documents.values():
            if str(document.path) == path:
                return document.places
        try:
            return self._places(decode(read_file(path, MAX_SOURCE)))
        except (OSError, SyntaxError, LookupError, UnicodeError):
            return None

    def _cwd(self, path: Path) -> str:
        """The folder that a file's paths are relative to: the innermost workspace folder around it, else its own."""
        folders = [place for uri in self.workspace.folders if (place := path_of(uri)) and path.is_relative_to(place)]
        root = path_of(self.workspace.root_uri or "")
        if not folders and root is not None and path.is_relative_to(root):
            folders = [root]
        return str(max(folders, key=lambda place: len(place.parts), default=path.parent))


def make_server() -> Server:
    """A server that answers what it can."""
    server = Server()

    def quiet(handler: Callable[[_P], _R]) -> Callable[[_P], _R | None]:
        def handle(params: _P) -> _R | None:
            try:
                return handler(params)
            except Exception:
                server.mistake(traceback.format_exc())
                return None

        return handle

    def quiet_later(handler: Callable[[_P], Awaitable[_R]]) -> Callable[[_P], Awaitable[_R | None]]:
        async def handle(params: _P) -> _R | None:
            try:
                return await handler(params)
            except Exception:
                server.mistake(traceback.format_exc())
                return None

        return handle

    kinds = types.CodeActionOptions(code_action_kinds=list(actions.KINDS), resolve_provider=True)
    pulls = types.DiagnosticOptions(inter_file_dependencies=True, workspace_diagnostics=False, identifier=SECTION)
    # the documents are ours: pygls takes a form feed for the end of a line, and rewrites the places of changes by that
    for event in (types.TEXT_DOCUMENT_DID_OPEN, types.TEXT_DOCUMENT_DID_CHANGE, types.TEXT_DOCUMENT_DID_CLOSE):
        del server.protocol.fm.builtin_features[event]
    server.feature(types.INITIALIZE)(quiet(server.begin))
    server.feature(types.INITIALIZED)(quiet_later(server.begun))
    server.feature(types.TEXT_DOCUMENT_DID_OPEN)(quiet(server.opened))
    server.feature(types.TEXT_DOCUMENT_DID_CHANGE)(quiet(server.changed))
    server.feature(types.TEXT_DOCUMENT_DID_SAVE)(quiet(server.saved))
    server.feature(types.TEXT_DOCUMENT_DID_CLOSE)(quiet(server.closed))
    server.feature(types.TEXT_DOCUMENT_HOVER)(quiet(server.hovered))
    server.feature(types.TEXT_DOCUMENT_CODE_ACTION, kinds)(quiet_later(server.acted))
    server.feature(types.CODE_ACTION_RESOLVE)(quiet_later(server.resolved))
    server.feature(types.TEXT_DOCUMENT_DIAGNOSTIC, pulls)(quiet_later(server.pull))
    server.feature(types.WORKSPACE_DID_CHANGE_CONFIGURATION)(quiet_later(server.configured))
    server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)(quiet(server.watched))
    server.feature(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)(quiet(lambda _: server.look_again()))
    return server


def serve(address: tuple[str, int] | None) -> int:
    """Serve one client, on standard input and output or on a port, until it goes; the exit code, which is 0 where the
    client has said that it goes."""
    server = make_server()
    try:
        if address is None:
            # what is printed by mistake must not get between the messages
            out = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
            os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
            server.start_io(sys.stdin.buffer, out)
        else:
            server.start_tcp(*address)
    finally:
        server.scheduler.close()
    return 0 if server.protocol._shutdown else 1
