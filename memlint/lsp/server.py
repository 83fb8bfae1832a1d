"""The server: handlers of a client's requests."""

from __future__ import annotations

import asyncio
import os
import sys
import traceback
from collections.abc import Awaitable, Callable
from typing import TypeVar

from lsprotocol import types

from memlint.explanation import Explanation
from memlint.lsp import actions, verifying
from memlint.lsp.diagnostics import Report
from memlint.lsp.hover import has_finding, hover
from memlint.lsp.messages import Explain, Fix
from memlint.lsp.notebooks import Unit
from memlint.lsp.session import Session
from memlint.lsp.settings import SECTION, section_of

#: the files of a project that influence the findings in others
WATCHED = ("**/*.{py,pyi,pyw,ipynb}", "**/{pyproject,memlint}.toml")
#: the seconds that a hover on a finding waits for facts about values
PATIENCE = 1.0
_P = TypeVar("_P")
_R = TypeVar("_R")


class Server(Session):
    """Answers a client's requests."""

    def begin(self, params: types.InitializeParams) -> None:
        """Record the client's capabilities and options."""
        document = params.capabilities.text_document
        self.pulls = document is not None and document.diagnostic is not None
        self.initial = params.initialization_options
        self.configure(None)

    async def begun(self, _: types.InitializedParams) -> None:
        """Register for changes of the watched files, if the client supports that."""
        workspace = self.client_capabilities.workspace
        watched = None if workspace is None else workspace.did_change_watched_files
        if watched is not None and watched.dynamic_registration:
            options = types.DidChangeWatchedFilesRegistrationOptions([types.FileSystemWatcher(one) for one in WATCHED])
            registration = types.Registration("memlint-files", types.WORKSPACE_DID_CHANGE_WATCHED_FILES, options)
            await self.client_register_capability_async(types.RegistrationParams([registration]))

    async def configured(self, params: types.DidChangeConfigurationParams) -> None:
        """Apply new settings. A client that sends none with the message is asked for them."""
        found = section_of(params.settings)
        workspace = self.client_capabilities.workspace
        if found is None and workspace is not None and workspace.configuration:
            item = types.ConfigurationItem(section=SECTION)
            answer = await self.workspace_configuration_async(types.ConfigurationParams([item]))
            found = answer[0] if answer else None
        if section_of(found) is not None:  # some send an empty table at the start, which must not reset anything
            self.configure(found)
            self.look_again()

    async def pull(self, params: types.DocumentDiagnosticParams) -> types.DocumentDiagnosticReport:
        """The diagnostics of a document's current text, once it is analysed."""
        uri = params.text_document.uri
        await self.settle(uri)
        report = self.reports.get(uri)
        if report is None:
            return types.RelatedFullDocumentDiagnosticReport([])
        if params.previous_result_id == report.identity:
            return types.RelatedUnchangedDocumentDiagnosticReport(report.identity)
        return types.RelatedFullDocumentDiagnosticReport(list(report.diagnostics), result_id=report.identity)

    async def hovered(self, params: types.HoverParams) -> types.Hover | None:
        """The findings at a position, and the known facts about the values there."""
        uri = params.text_document.uri
        await self.settle(uri)
        unit = self.owner(uri)
        if unit is None or not self.is_current(uri):
            return None
        known = await self._explained(unit, uri, params.position) if self.settings.explain else None
        return hover(self.reports[uri], params.position, known) if self.is_current(uri) else None

    async def _explained(self, unit: Unit, uri: str, position: types.Position) -> Explanation | None:
        """The known facts about the values at a position; None without code there, or if the analysis takes too
        long."""
        cell, view = next((cell, view) for cell, view in unit.views.items() if view.uri == uri)
        offset = view.places.offset(position)
        if not view.places.text[offset : offset + 1].strip():
            return None
        (line, column), cwd, texts = view.places.place(position), self.cwd(unit.path), self.texts()
        overrides = self.settings.overrides
        asked = self.scheduler.explain(
            lambda number: Explain(number, str(unit.path), cwd, texts, overrides, line=line, column=column, cell=cell)
        )
        # the findings there are known already, and are not held back by a long analysis
        patience = PATIENCE if has_finding(self.reports[uri], position) else None
        try:
            answer = await asyncio.wait_for(asked, patience)
        except asyncio.TimeoutError:
            return None
        if answer.mistake:
            self.mistake(answer.mistake)
        return answer.explained

    async def acted(self, params: types.CodeActionParams) -> list[types.CodeAction]:
        """The actions at a position, by a complete answer: an edit of one function may make another one's fix wrong.
        Fixing all takes another analysis, which waits until the action is chosen, if the client can resolve actions."""
        uri, only = params.text_document.uri, params.context.only
        await self.settle(uri, complete=True)
        unit = self.owner(uri)
        if unit is None or not self.is_current(uri):
            return []
        desk, found = self._desk(unit, self.reports[uri]), list[types.CodeAction]()
        if actions.is_wanted(types.CodeActionKind.QuickFix, only):
            found += await asyncio.to_thread(lambda: list(actions.quick_fixes(desk, params.range)))
        kind = actions.fix_all_kind(unit, only)
        if kind is not None and any(actions.has_safe_fixes(report) for report in self._reports(unit)):
            action = actions.fix_all(kind, {"uri": unit.uri})
            found.append(action if self._resolves or not only else await self.resolved(action))
        found = [one for one in found if one.edit is not None or self._resolves]
        if actions.is_wanted(verifying.KIND, only) and actions.is_verifiable(unit, self.reports[uri]):
            found.append(actions.verify(unit))
        return found

    async def resolved(self, action: types.CodeAction) -> types.CodeAction:
        """An action with its edits."""
        uri = action.data.get("uri") if isinstance(action.data, dict) else None
        unit = self.documents.get(uri) if isinstance(uri, str) else None
        if unit is None or action.kind not in actions.FIXES_ALL:
            return action
        version, views = unit.version, unit.views
        texts, cwd = self.texts(), self.cwd(unit.path)
        answer = await self.scheduler.fix(
            lambda number: Fix(number, str(unit.path), cwd, texts, self.settings.overrides)
        )
        self.log(answer)
        if answer.fixed is not None and unit.version == version:
            action.edit = actions.all_fixed(views, answer.fixed, self._versioned)
        return action

    def ending(self, _: None) -> None:
        """The client will exit, maybe at once: waiting here would delay the exit code."""
        self.verifier.finish()

    def cancelled(self, params: types.WorkDoneProgressCancelParams) -> None:
        self.verifier.cancelled(params.token)

    def _reports(self, unit: Unit) -> list[Report]:
        """The reports of all texts of a file."""
        return [self.reports[view.uri] for view in unit.views.values() if view.uri in self.reports]

    def _desk(self, unit: Unit, report: Report) -> actions.Desk:
        return actions.Desk(unit, report, self.view, self._versioned)

    @property
    def _resolves(self) -> bool:
        """Whether the client requests the edits of an action when it is chosen."""
        document = self.client_capabilities.text_document
        action = None if document is None else document.code_action
        support = None if action is None else action.resolve_support
        return support is not None and "edit" in support.properties

    @property
    def _versioned(self) -> bool:
        """Whether the client supports versioned edits."""
        workspace = self.client_capabilities.workspace
        edits = None if workspace is None else workspace.workspace_edit
        return bool(edits and edits.document_changes)


#: replaces pygls's documents, which take a form feed for a line end and convert positions of changes by that
_OURS = (
    types.TEXT_DOCUMENT_DID_OPEN,
    types.TEXT_DOCUMENT_DID_CHANGE,
    types.TEXT_DOCUMENT_DID_CLOSE,
    types.NOTEBOOK_DOCUMENT_DID_OPEN,
    types.NOTEBOOK_DOCUMENT_DID_CHANGE,
    types.NOTEBOOK_DOCUMENT_DID_CLOSE,
)


def make_server() -> Server:
    """A server with all handlers."""
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
    for event in _OURS:
        del server.protocol.fm.builtin_features[event]
    server.feature(types.INITIALIZE)(quiet(server.begin))
    server.feature(types.INITIALIZED)(quiet_later(server.begun))
    server.feature(types.TEXT_DOCUMENT_DID_OPEN)(quiet(server.opened))
    server.feature(types.TEXT_DOCUMENT_DID_CHANGE)(quiet(server.changed))
    server.feature(types.TEXT_DOCUMENT_DID_SAVE)(quiet(server.saved))
    server.feature(types.TEXT_DOCUMENT_DID_CLOSE)(quiet(server.closed))
    server.feature(types.NOTEBOOK_DOCUMENT_DID_OPEN)(quiet(server.notebook_opened))
    server.feature(types.NOTEBOOK_DOCUMENT_DID_CHANGE)(quiet(server.notebook_changed))
    server.feature(types.NOTEBOOK_DOCUMENT_DID_SAVE)(quiet(server.notebook_saved))
    server.feature(types.NOTEBOOK_DOCUMENT_DID_CLOSE)(quiet(server.notebook_closed))
    server.feature(types.TEXT_DOCUMENT_HOVER)(quiet_later(server.hovered))
    server.feature(types.TEXT_DOCUMENT_CODE_ACTION, kinds)(quiet_later(server.acted))
    server.feature(types.CODE_ACTION_RESOLVE)(quiet_later(server.resolved))
    server.feature(types.TEXT_DOCUMENT_DIAGNOSTIC, pulls)(quiet_later(server.pull))
    server.feature(types.SHUTDOWN)(quiet(server.ending))
    server.feature(types.WINDOW_WORK_DONE_PROGRESS_CANCEL)(quiet(server.cancelled))
    server.command(verifying.VERIFY)(lambda *arguments: server.verifier.start(*arguments))
    server.command(verifying.STOP)(lambda *arguments: server.verifier.stop(*arguments))
    server.feature(types.WORKSPACE_DID_CHANGE_CONFIGURATION)(quiet_later(server.configured))
    server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)(quiet(server.watched))
    server.feature(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)(quiet(lambda _: server.look_again()))
    return server


def serve(address: tuple[str, int] | None) -> int:
    """Serve one client, on standard input and output or on a port, until it exits; returns the exit code, which is 0
    after a regular exit."""
    server = make_server()
    try:
        if address is None:
            # accidental prints must not get between the messages
            out = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
            os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
            server.start_io(sys.stdin.buffer, out)
        else:
            server.start_tcp(*address)
    finally:
        server.verifier.close()
        server.scheduler.close()
    return 0 if server.protocol._shutdown else 1
