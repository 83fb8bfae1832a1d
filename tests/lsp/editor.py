"""An editor: pytest-lsp's client, talking to the real process."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

from lsprotocol import types
from pytest_lsp import LanguageClient, client_capabilities

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 120  # (an upper bound for machines that do much else)
#: has no pull diagnostics, and counts in UTF-16
CODE = "visual-studio-code"
#: asks for diagnostics
NEOVIM = "neovim@0.11"

LEAK = """\
import torch


def train(model: torch.nn.Module, loader, optimizer, criterion):
    total = 0.0
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        total += loss
    return total
"""

EVALUATION = """\
import torch


def evaluate(model: torch.nn.Module, loader):
    model.eval()
    seen = 0
    for x in loader:
        seen += int(model(x).argmax())
    return seen
"""


class Notebook:
    """An open notebook as its editor has it. ``cells``: the URI, the kind, the text and its version of each."""

    def __init__(self, editor: Editor, file: Path, texts: Sequence[str | tuple[str, str]]) -> None:
        self._client = editor.client
        self.uri, self._made, self._version = file.as_uri(), 0, 1
        self.versions: dict[str, int] = {}
        items = [self._item(text) for text in texts]
        self.cells = [self._cell(item) for item in items]
        document = types.NotebookDocument(self.uri, "jupyter-notebook", 1, self.cells)
        self._client.notebook_document_did_open(types.DidOpenNotebookDocumentParams(document, items))

    def __getitem__(self, number: int) -> str:
        """The URI of a cell, by its number from 1."""
        return self.cells[number - 1].document

    def type(self, number: int, *edits: tuple[tuple[int, int, int, int], str] | str) -> int:
        """Edit a cell; the version of its text."""
        uri = self[number]
        self.versions[uri] += 1
        identifier = types.VersionedTextDocumentIdentifier(self.versions[uri], uri)
        content = types.NotebookDocumentCellContentChanges(identifier, changes_of(edits))
        self._change(types.NotebookDocumentCellChanges(text_content=[content]))
        return self.versions[uri]

    def splice(self, start: int, count: int, *texts: str | tuple[str, str]) -> list[str]:
        """Put cells in place of others, which are closed; their URIs. (``start``: a number from 1.)"""
        items = [self._item(text) for text in texts]
        new, gone = [self._cell(item) for item in items], self.cells[start - 1 : start - 1 + count]
        closed = [types.TextDocumentIdentifier(cell.document) for cell in gone]
        self._structure(start, count, new, items, closed)
        return [cell.document for cell in new]

    def move(self, start: int, to: int) -> None:
        """Move a cell, as one exchange of the cells between the two places."""
        order = list(self.cells)
        order.insert(to - 1, order.pop(start - 1))
        self._structure(1, len(order), order, [], [])

    def set_kind(self, number: int, kind: types.NotebookCellKind) -> None:
        cell = types.NotebookCell(kind, self[number])
        self.cells[number - 1] = cell
        self._change(types.NotebookDocumentCellChanges(data=[cell]))

    def save(self) -> None:
        params = types.DidSaveNotebookDocumentParams(types.NotebookDocumentIdentifier(self.uri))
        self._client.notebook_document_did_save(params)

    def close(self) -> None:
        cells = [types.TextDocumentIdentifier(cell.document) for cell in self.cells]
        params = types.DidCloseNotebookDocumentParams(types.NotebookDocumentIdentifier(self.uri), cells)
        self._client.notebook_document_did_close(params)

    def _item(self, text: str | tuple[str, str]) -> types.TextDocumentItem:
        """A text, of Python or of the language that is named beside it."""
        language, content = ("python", text) if isinstance(text, str) else text
        self._made += 1
        uri = f"vscode-notebook-cell:{self.uri.removeprefix('file://')}#W{self._made}sZmlsZQ%3D%3D"
        self.versions[uri] = 1
        return types.TextDocumentItem(uri, language, 1, content)

    @staticmethod
    def _cell(item: types.TextDocumentItem) -> types.NotebookCell:
        prose = item.language_id == "markdown"
        return types.NotebookCell(types.NotebookCellKind.Markup if prose else types.NotebookCellKind.Code, item.uri)

    def _structure(
        self,
        start: int,
        count: int,
        new: Sequence[types.NotebookCell],
        opened: Sequence[types.TextDocumentItem],
        closed: Sequence[types.TextDocumentIdentifier],
    ) -> None:
        self.cells[start - 1 : start - 1 + count] = new
        array = types.NotebookCellArrayChange(start - 1, count, list(new))
        structure = types.NotebookDocumentCellChangeStructure(array, opened or None, closed or None)
        self._change(types.NotebookDocumentCellChanges(structure=structure))

    def _change(self, cells: types.NotebookDocumentCellChanges) -> None:
        self._version += 1
        identifier = types.VersionedNotebookDocumentIdentifier(self._version, self.uri)
        change = types.NotebookDocumentChangeEvent(cells=cells)
        self._client.notebook_document_did_change(types.DidChangeNotebookDocumentParams(identifier, change))


def changes_of(
    edits: Sequence[tuple[tuple[int, int, int, int], str] | str],
) -> list[types.TextDocumentContentChangeEvent]:
    """Edits (line, character, end line, end character, from 0; or the whole text) as messages have them."""
    changes: list[types.TextDocumentContentChangeEvent] = []
    for edit in edits:
        if isinstance(edit, str):
            changes.append(types.TextDocumentContentChangeWholeDocument(edit))
        else:
            (line, column, end, end_column), text = edit
            place = types.Range(types.Position(line, column), types.Position(end, end_column))
            changes.append(types.TextDocumentContentChangePartial(place, text))
    return changes


class Editor:
    """One session. ``published``: all that the server has sent of diagnostics, in order."""

    def __init__(self, client: LanguageClient) -> None:
        self.client = client
        self.published: list[types.PublishDiagnosticsParams] = []
        self.encoding = ""
        self.capabilities = types.ServerCapabilities()
        #: what was shown to the person, and the values of each progress
        self.messages: list[types.ShowMessageParams] = []
        self.progress: dict[types.ProgressToken, list[Any]] = {}
        #: whether the server has asked to pull again
        self.refreshed = asyncio.Event()
        self._news = asyncio.Event()
        self._versions: dict[str, int] = {}
        self._notebooks: list[Notebook] = []

    def take(self, params: types.PublishDiagnosticsParams) -> None:
        self.published.append(params)
        self._news.set()

    def open(self, file: Path, text: str | None = None) -> str:
        uri = file.as_uri()
        self._versions[uri] = 1
        item = types.TextDocumentItem(uri, "python", 1, file.read_text("utf-8") if text is None else text)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(item))
        return uri

    def open_notebook(self, file: Path, *texts: str | tuple[str, str]) -> Notebook:
        self._notebooks.append(Notebook(self, file, texts))
        return self._notebooks[-1]

    def enter(self, folder: Path) -> None:
        """Work in one more folder."""
        self._change_folders([types.WorkspaceFolder(folder.as_uri(), folder.name)], [])

    async def leave(self, folder: Path) -> None:
        """Close all documents and the folder, and forget what was said meanwhile."""
        for uri in self._versions:
            self.close(uri)
        for notebook in self._notebooks:
            notebook.close()
        self._change_folders([], [types.WorkspaceFolder(folder.as_uri(), folder.name)])
        await self.hover(folder.as_uri(), 0, 0)  # (the answer comes behind all that was said of these)
        for one in (self._versions, self._notebooks, self.published, self.messages, self.progress):
            one.clear()
        self.client.log_messages.clear()

    def _change_folders(self, added: list[types.WorkspaceFolder], removed: list[types.WorkspaceFolder]) -> None:
        params = types.DidChangeWorkspaceFoldersParams(types.WorkspaceFoldersChangeEvent(added, removed))
        self.client.workspace_did_change_workspace_folders(params)

    def change(self, uri: str, *edits: tuple[tuple[int, int, int, int], str] | str) -> int:
        """Edits (line, character, end line, end character, from 0; or the whole text); the new version."""
        self._versions[uri] += 1
        identifier = types.VersionedTextDocumentIdentifier(self._versions[uri], uri)
        self.client.text_document_did_change(types.DidChangeTextDocumentParams(identifier, changes_of(edits)))
        return self._versions[uri]

    def save(self, uri: str) -> None:
        self.client.text_document_did_save(types.DidSaveTextDocumentParams(types.TextDocumentIdentifier(uri)))

    def close(self, uri: str) -> None:
        self.client.text_document_did_close(types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(uri)))

    def written(self, *files: Path) -> None:
        """Say that files were changed on the disk."""
        events = [types.FileEvent(file.as_uri(), types.FileChangeType.Changed) for file in files]
        self.client.workspace_did_change_watched_files(types.DidChangeWatchedFilesParams(events))

    async def found(self, uri: str, version: int | None = 1) -> list[types.Diagnostic]:
        """What was published of a version of a document: the first time that this is asked after it was."""

        async def wait() -> list[types.Diagnostic]:
            while True:
                for one in self.published:
                    if one.uri == uri and one.version == version:
                        self.published.remove(one)
                        return list(one.diagnostics)
                self._news.clear()
                await self._news.wait()

        return await asyncio.wait_for(wait(), SECONDS)

    async def pull(self, uri: str, previous: str | None = None) -> types.DocumentDiagnosticReport:
        params = types.DocumentDiagnosticParams(types.TextDocumentIdentifier(uri), previous_result_id=previous)
        return await asyncio.wait_for(self.client.text_document_diagnostic_async(params), SECONDS)

    async def hover(self, uri: str, line: int, character: int) -> str:
        params = types.HoverParams(types.TextDocumentIdentifier(uri), types.Position(line, character))
        answer = await asyncio.wait_for(self.client.text_document_hover_async(params), SECONDS)
        if answer is None:
            return ""
        assert isinstance(answer.contents, types.MarkupContent)
        return answer.contents.value

    async def actions(self, uri: str, place: types.Range, only: Sequence[str] | None = None) -> list[types.CodeAction]:
        context = types.CodeActionContext([], only=only)
        params = types.CodeActionParams(types.TextDocumentIdentifier(uri), place, context)
        found = await asyncio.wait_for(self.client.text_document_code_action_async(params), SECONDS)
        assert all(isinstance(one, types.CodeAction) for one in found or ())
        return list(found or ())  # type: ignore[arg-type]

    async def resolve(self, action: types.CodeAction) -> types.CodeAction:
        return await asyncio.wait_for(self.client.code_action_resolve_async(action), SECONDS)

    async def logged(self, part: str) -> str:
        """The first line of the server's log with a word in it."""
        return await _said(self.client.log_messages, part)

    async def shown(self, part: str) -> str:
        """The first message to the person with a word in it."""
        return await _said(self.messages, part)

    async def execute(self, command: str, *arguments: Any) -> Any:
        params = types.ExecuteCommandParams(command, list(arguments))
        return await asyncio.wait_for(self.client.workspace_execute_command_async(params), SECONDS)


async def _said(messages: Sequence[types.LogMessageParams | types.ShowMessageParams], part: str) -> str:
    async def wait() -> str:
        while True:
            for one in messages:
                if part in one.message:
                    return one.message
            await asyncio.sleep(0.02)

    return await asyncio.wait_for(wait(), SECONDS)


def command() -> list[str]:
    return [sys.executable, "-m", "memlint", "lsp"]


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), **more}


@contextlib.asynccontextmanager
async def editing(
    *folders: Path,
    name: str = CODE,
    options: Any = None,
    settings: dict[str, Any] | None = None,
    encodings: Sequence[str] | None = None,
    env: dict[str, str] | None = None,
    refreshes: bool = False,
) -> AsyncIterator[Editor]:
    """A session in some workspace folders, with what a client of that name can do; at its end the server has to go in
    order. ``settings``: what the client says when it is asked; ``refreshes``: it can be asked to pull again."""
    client = LanguageClient(configuration=None if settings is None else {"": settings})
    editor = Editor(client)
    client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(lambda params: editor.take(params))
    client.feature(types.WINDOW_LOG_MESSAGE)(lambda params: client.log_messages.append(params))
    client.feature(types.WORKSPACE_CONFIGURATION)(
        lambda params: [client.get_configuration(section=item.section) for item in params.items]
    )
    client.feature(types.WORKSPACE_DIAGNOSTIC_REFRESH)(lambda _: editor.refreshed.set())
    client.feature(types.CLIENT_REGISTER_CAPABILITY)(lambda _: None)
    client.feature(types.WINDOW_SHOW_MESSAGE)(lambda params: editor.messages.append(params))
    client.feature(types.WINDOW_WORK_DONE_PROGRESS_CREATE)(
        lambda params: editor.progress.setdefault(params.token, []) and None
    )
    client.feature(types.PROGRESS)(lambda params: editor.progress[params.token].append(params.value))
    # (lsprotocol takes an action with a command for a bare command)
    converter = client.protocol._converter
    converter.register_structure_hook(
        types.Command | types.CodeAction,
        lambda row, _: (
            converter.structure(row, types.Command if isinstance(row["command"], str) else types.CodeAction)
            if "command" in row
            else converter.structure(row, types.CodeAction)
        ),
    )
    await client.start_io(*command(), env=env or environment())
    capabilities = client_capabilities(name)
    synchronization = types.NotebookDocumentSyncClientCapabilities()
    capabilities.notebook_document = types.NotebookDocumentClientCapabilities(synchronization)
    if refreshes:
        capabilities.workspace = capabilities.workspace or types.WorkspaceClientCapabilities()
        capabilities.workspace.diagnostics = types.DiagnosticWorkspaceClientCapabilities(refresh_support=True)
    if encodings is not None:
        capabilities.general = types.GeneralClientCapabilities(position_encodings=list(encodings))
    roots = [types.WorkspaceFolder(folder.as_uri(), folder.name) for folder in folders]
    params = types.InitializeParams(
        capabilities=capabilities, initialization_options=options, workspace_folders=roots, process_id=os.getpid()
    )
    server = client._server
    assert server is not None
    try:
        answer = await asyncio.wait_for(client.initialize_session(params), SECONDS)
        editor.capabilities = answer.capabilities
        editor.encoding = str(answer.capabilities.position_encoding)
        yield editor
        await asyncio.wait_for(client.shutdown_async(None), SECONDS)
        client.exit(None)
        assert await asyncio.wait_for(server.wait(), SECONDS) == 0
    finally:
        if server.returncode is None:
            server.kill()
        await client.stop()


def applied(text: str, edit: types.WorkspaceEdit | None, uri: str) -> str:
    """A text with the edits that a workspace edit has for it, by a client that counts in UTF-16."""
    assert edit is not None
    rows: list[types.TextEdit] = []
    for change in edit.document_changes or ():
        assert isinstance(change, types.TextDocumentEdit)
        if change.text_document.uri == uri:
            rows += change.edits  # type: ignore[arg-type]
    rows += (edit.changes or {}).get(uri, ())
    units = text.encode("utf-16-le")
    starts = [0, *(at + 2 for at in range(0, len(units), 2) if units[at : at + 2] == b"\n\0")]

    def offset(place: types.Position) -> int:
        return starts[place.line] + 2 * place.character

    for row in sorted(rows, key=lambda one: offset(one.range.start), reverse=True):
        units = units[: offset(row.range.start)] + row.new_text.encode("utf-16-le") + units[offset(row.range.end) :]
    return units.decode("utf-16-le")
