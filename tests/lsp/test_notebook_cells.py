"""Notebooks in an editor: state flows from cell to cell, and what is found stands in its cell."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pytest_lsp")

from editor import NEOVIM, Editor, Notebook, applied, editing
from lsprotocol import types
from notebooks import code, prose
from notebooks import notebook as written

from memlint import lint

pytestmark = pytest.mark.asyncio(loop_scope="module")

SETUP = """\
%load_ext autoreload
!pip install -q torch
import torch
model = torch.nn.Linear(512, 512)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
losses = []
"""
PROSE = ("markdown", "# training")
TRAIN = """\
%time x = 1
for x, y in loader:
    loss = torch.nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""
KEEP = "    losses.append(loss)\n"
LINE = TRAIN.count("\n")


async def test_a_finding_stands_in_its_cell_and_names_what_stands_in_others(root: Path, editor: Editor) -> None:
    notebook = editor.open_notebook(root / "train.ipynb", SETUP, PROSE, TRAIN + KEEP)
    assert await editor.found(notebook[1]) == []
    (found,) = await editor.found(notebook[3])
    assert found.code == "MEM102"
    assert (found.range.start.line, found.range.start.character) == (LINE, 4)
    places = {one.location.uri for one in found.related_information or ()}
    assert places == {notebook[3]}
    assert not [one for one in editor.published if one.uri in (notebook.uri, notebook[2])]
    hover = await editor.hover(notebook[3], LINE, 6)
    assert "retained-graph" in hover and "train.ipynb:cell 3:3" in hover
    assert "retained-graph" not in await editor.hover(notebook[1], 4, 2)
    notebook.close()
    assert await editor.found(notebook[3], None) == []


async def test_an_edit_of_a_middle_cell_changes_what_is_found_in_another(root: Path, editor: Editor) -> None:
    helper = "def kept(loss):\n    return loss\n"
    notebook = editor.open_notebook(root / "train.ipynb", SETUP, helper, TRAIN + "    losses.append(kept(loss))\n")
    (found,) = await editor.found(notebook[3])
    assert found.code == "MEM102"
    assert await editor.found(notebook[2]) == []
    version = notebook.type(2, ((1, 15, 1, 15), ".item()"))
    assert await editor.found(notebook[3]) == []
    assert await editor.found(notebook[2], version) == []
    notebook.type(2, ((1, 15, 1, 22), ""))
    (found,) = await editor.found(notebook[3])
    assert found.code == "MEM102"


def on_disk(root: Path, notebook: Notebook, texts: dict[str, str]) -> list[tuple[int | None, int, int, str]]:
    """What a run on the file with these cells finds."""
    cells = [
        prose(texts[one.document]) if one.kind == types.NotebookCellKind.Markup else code(texts[one.document])
        for one in notebook.cells
    ]
    file = root / "elsewhere" / "train.ipynb"
    file.parent.mkdir(exist_ok=True)
    file.write_text(written(*cells), "utf-8")
    return [(one.cell, one.line, one.column, one.code) for one in lint([file]).findings]


async def in_editor(editor: Editor, notebook: Notebook) -> list[tuple[int | None, int, int, str]]:
    """What the server says of all cells, by a client that asks."""
    found: list[tuple[int | None, int, int, str]] = []
    for number, cell in enumerate(notebook.cells, 1):
        report = await editor.pull(cell.document)
        assert isinstance(report, types.RelatedFullDocumentDiagnosticReport)
        starts = [(one.range.start, str(one.code)) for one in report.items]
        found += [(number, start.line + 1, start.character + 1, code) for start, code in starts]
    return found


async def test_after_each_change_the_same_is_found_as_in_the_file(root: Path) -> None:
    async with editing(root, name=NEOVIM) as editor:
        notebook = editor.open_notebook(root / "train.ipynb", SETUP, PROSE, TRAIN + KEEP, "total = 0.0\n")
        texts = dict(
            zip(
                [cell.document for cell in notebook.cells],
                [SETUP, PROSE[1], TRAIN + KEEP, "total = 0.0\n"],
                strict=True,
            )
        )
        counts = []

        async def check() -> None:
            found = await in_editor(editor, notebook)
            assert found == on_disk(root, notebook, texts)
            counts.append(len(found))

        await check()
        (new,) = notebook.splice(4, 0, TRAIN + "    total += loss\n")
        texts[new] = TRAIN + "    total += loss\n"
        await check()
        notebook.move(5, 1)  # (the sum begins before all others)
        await check()
        notebook.splice(3, 1)  # (the cell of text)
        await check()
        notebook.type(3, TRAIN)
        texts[notebook[3]] = TRAIN
        await check()
        notebook.move(2, 4)  # (the model is made behind what runs it)
        await check()
        notebook.move(4, 2)
        await check()
        notebook.type(1, "total = (\n")
        texts[notebook[1]] = "total = (\n"
        await check()
        notebook.set_kind(1, types.NotebookCellKind.Markup)
        await check()
        notebook.splice(1, 4)
        await check()
        assert counts[0] == 1 and counts[1] == 2 and counts[-1] == 0, counts


async def test_what_was_said_of_a_cell_that_is_deleted_is_taken_back(root: Path, editor: Editor) -> None:
    notebook = editor.open_notebook(root / "train.ipynb", SETUP, TRAIN + KEEP, TRAIN + KEEP)
    second = notebook[2]
    assert len(await editor.found(second)) == 1
    assert len(await editor.found(notebook[3])) == 1
    notebook.splice(2, 1)
    assert await editor.found(second, None) == []
    assert "train.ipynb:cell 2:" in await hover_when_ready(editor, notebook[2])


async def hover_when_ready(editor: Editor, uri: str) -> str:
    """What is said of the finding of a cell, once it is analysed (actions wait for that)."""
    await editor.actions(uri, types.Range(types.Position(0, 0), types.Position(0, 0)))
    return await editor.hover(uri, LINE, 6)


async def test_fixes_and_comments_are_edits_of_the_cell(root: Path, editor: Editor) -> None:
    cell = TRAIN + "    total += loss"
    notebook = editor.open_notebook(root / "train.ipynb", SETUP, PROSE, "total = 0.0", cell)
    uri = notebook[4]
    (found,) = await editor.found(uri)
    assert found.code == "MEM101"
    titles = {one.title: one for one in await editor.actions(uri, found.range)}
    (fix,) = [one for one in titles.values() if one.is_preferred]
    assert applied(cell, fix.edit, uri) in (f"{cell}.{end}" for end in ("item()", "detach()"))
    ignored = applied(cell, titles["Ignore MEM101 on this line"].edit, uri)
    assert ignored == f"{cell}  # memlint: ignore[MEM101]"


async def test_all_fixes_of_a_notebook_reach_every_cell(root: Path, editor: Editor) -> None:
    texts = [
        SETUP,
        "total = 0.0",
        TRAIN + "    total += loss\n",
        PROSE,
        TRAIN.replace("loss", "other") + "    total += other",
    ]
    notebook = editor.open_notebook(root / "train.ipynb", *texts)
    await editor.found(notebook[5])
    nowhere = types.Range(types.Position(0, 0), types.Position(0, 0))
    for kind in ("source.fixAll.memlint", "notebook.source.fixAll"):
        (action,) = await editor.actions(notebook[3], nowhere, [kind])
        edit = action.edit or (await editor.resolve(action)).edit
        third, fifth = (applied(str(texts[number - 1]), edit, notebook[number]) for number in (3, 5))
        assert third.splitlines()[:-1] == TRAIN.splitlines()
        assert [text.splitlines()[-1].strip() for text in (third, fifth)] in (
            [f"total += loss.{end}", f"total += other.{end}"] for end in ("item()", "detach()")
        )


async def test_a_cell_in_another_language_and_one_that_does_not_parse_cost_themselves_alone(
    root: Path, editor: Editor
) -> None:
    cells = [SETUP, ("sql", "SELECT * FROM losses"), "def broken(:\n", TRAIN + KEEP]
    notebook = editor.open_notebook(root / "train.ipynb", *cells)
    assert [one.code for one in await editor.found(notebook[4])] == ["MEM102"]
    assert await editor.found(notebook[2]) == []
    (found,) = await editor.found(notebook[3])
    assert found.code == "MEM000" and found.range.start.line == 0


async def test_changes_of_cells_that_are_not_there_change_nothing(root: Path, editor: Editor) -> None:
    notebook = editor.open_notebook(root / "train.ipynb", SETUP, TRAIN + KEEP)
    assert len(await editor.found(notebook[2])) == 1
    stranger = "vscode-notebook-cell:/nowhere#1"
    identifier = types.VersionedTextDocumentIdentifier(2, stranger)
    content = types.NotebookDocumentCellContentChanges(identifier, [])
    behind = types.NotebookCellArrayChange(100, 5, [types.NotebookCell(types.NotebookCellKind.Code, stranger)])
    for cells in (
        types.NotebookDocumentCellChanges(text_content=[content]),
        types.NotebookDocumentCellChanges(data=[types.NotebookCell(types.NotebookCellKind.Markup, stranger)]),
        types.NotebookDocumentCellChanges(structure=types.NotebookDocumentCellChangeStructure(behind)),
    ):
        notebook._change(cells)
    assert "retained-graph" in await hover_when_ready(editor, notebook[2])
    for uri in ("untitled:Untitled-1.ipynb", (root / "other.ipynb").as_uri()):
        identifier = types.VersionedNotebookDocumentIdentifier(2, uri)
        params = types.DidChangeNotebookDocumentParams(identifier, types.NotebookDocumentChangeEvent())
        editor.client.notebook_document_did_change(params)
        closed = types.DidCloseNotebookDocumentParams(types.NotebookDocumentIdentifier(uri), [])
        editor.client.notebook_document_did_close(closed)
    version = notebook.type(2, TRAIN)
    assert await editor.found(notebook[2], version) == []
    assert not [one for one in editor.client.log_messages if "internal error" in one.message]


async def test_the_unsaved_cells_count_and_not_what_the_disk_holds(root: Path, editor: Editor) -> None:
    file = root / "train.ipynb"
    file.write_text("{no JSON", "utf-8")
    notebook = editor.open_notebook(file, SETUP, TRAIN + KEEP)
    assert [one.code for one in await editor.found(notebook[2])] == ["MEM102"]
    notebook.save()
    notebook.type(2, TRAIN)
    assert await editor.found(notebook[2], 2) == []


async def test_a_client_is_asked_for_all_cells_of_jupyter_notebooks_in_files(root: Path, editor: Editor) -> None:
    sync = editor.capabilities.notebook_document_sync
    assert isinstance(sync, types.NotebookDocumentSyncOptions) and sync.save
    (selected,) = sync.notebook_selector
    assert isinstance(selected, types.NotebookDocumentFilterWithNotebook)
    # (findings name a cell by its number among all)
    assert selected.cells is None
    assert selected.notebook == types.NotebookDocumentFilterNotebookType("jupyter-notebook", "file")
