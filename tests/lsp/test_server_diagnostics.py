"""Findings while a person types: what is sent, for which version, with which text of which files."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

pytest.importorskip("pytest_lsp")

from editor import LEAK, NEOVIM, SECONDS, Editor, editing
from lsprotocol import types

pytestmark = pytest.mark.asyncio(loop_scope="module")


def write_both(root: Path) -> tuple[Path, Path]:
    """A helper, and the file whose loss comes of it."""
    helper = write(root / "steps.py", "def step(model, x):\n    return model(x).mean()\n")
    caller = LEAK.replace("import torch", "import torch\nfrom steps import step").replace(
        "criterion(model(x), y)", "step(model, x)"
    )
    return helper, write(root / "train.py", caller)


def write(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, "utf-8")
    return file


async def test_a_finding_is_shown_as_it_is_and_goes_when_it_is_typed_away(root: Path, editor: Editor) -> None:
    file = write(root / "train.py", LEAK)
    uri = editor.open(file)
    (found,) = await editor.found(uri)
    assert (found.code, found.source, found.severity) == ("MEM101", "memlint", types.DiagnosticSeverity.Warning)
    line = LEAK.splitlines().index("        total += loss")
    assert (found.range.start.line, found.range.start.character, found.range.end.character) == (line, 8, 21)
    assert found.message.startswith("`total` keeps the autograd graph of every `loss`")
    assert found.code_description is not None
    page = Path(found.code_description.href.removeprefix("file://"))
    assert page.read_text("utf-8").startswith("# loss-accumulation (MEM101)")
    assert not found.tags
    assert isinstance(found.data, dict) and found.data["code"] == "MEM101"
    version = editor.change(uri, ((line, 17, line, 21), "loss.item()"))
    assert await editor.found(uri, version) == []
    version = editor.change(uri, ((line, 21, line, 28), ""))
    (found,) = await editor.found(uri, version)
    assert found.code == "MEM101"
    editor.close(uri)
    assert await editor.found(uri, None) == []


async def test_only_what_is_said_of_the_newest_version_is_sent(root: Path, editor: Editor) -> None:
    file = write(root / "train.py", LEAK)
    uri = editor.open(file)
    for number in range(10):
        newest = editor.change(uri, ((0, 0, 0, 0), f"x{number} = {number}\n"))
    (found,) = await editor.found(uri, newest)
    assert found.range.start.line == LEAK.splitlines().index("        total += loss") + 10
    versions = [one.version for one in editor.published]
    assert versions == [] or versions == sorted(versions, key=lambda one: one or 0)
    assert newest not in versions


async def test_a_trace_leads_through_other_files_and_their_unsaved_text_counts(root: Path, editor: Editor) -> None:
    helper, file = write_both(root)
    uri = editor.open(file)
    (found,) = await editor.found(uri)
    places = {one.location.uri: one.location.range.start for one in found.related_information or ()}
    assert places[helper.as_uri()] == types.Position(1, 11), found
    other = editor.open(helper)
    assert await editor.found(other) == []
    editor.change(other, ((1, 11, 1, 26), "model(x).mean().item()"))
    # (nothing of it is on the disk)
    version = editor.change(uri, ((0, 0, 0, 0), "\n"))
    assert await editor.found(uri, version) == []
    assert "item" not in helper.read_text("utf-8")
    # where the other file is closed unsaved, the disk counts again
    editor.close(other)
    version = editor.change(uri, ((0, 0, 0, 0), "\n"))
    assert [one.code for one in await editor.found(uri, version)] == ["MEM101"]


async def test_saving_a_file_and_changes_on_the_disk_are_seen_in_the_others(root: Path, editor: Editor) -> None:
    helper, file = write_both(root)
    uri = editor.open(file)
    assert len(await editor.found(uri)) == 1
    other = editor.open(helper)
    version = editor.change(other, ((1, 11, 1, 26), "model(x).mean().item()"))
    await editor.found(other, version)
    editor.save(other)
    assert await editor.found(uri) == []
    editor.close(other)
    editor.written(helper)
    assert len(await editor.found(uri)) == 1
    write(helper, "def step(model, x):\n    return model(x).mean().item()\n")
    editor.written(helper)
    assert await editor.found(uri) == []


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("import torch\n\ndef f(:\n    pass\n", 2, "does not parse"),
        ("import torch\nx = '''\n", 1, "does not parse"),
        ("import torch\nif True:\npass\n", 2, "does not parse"),
    ],
)
async def test_what_does_not_parse_is_shown_at_its_place(
    root: Path, text: str, line: int, said: str, editor: Editor
) -> None:
    file = write(root / "train.py", "")
    uri = editor.open(file, text)
    (found,) = await editor.found(uri)
    assert (found.code, found.range.start.line) == ("MEM000", line) and said in found.message
    version = editor.change(uri, LEAK)
    assert [one.code for one in await editor.found(uri, version)] == ["MEM101"]


async def test_files_outside_of_any_folder_and_files_that_are_no_files_yet(root: Path, tmp_path: Path) -> None:
    async with editing(root) as editor:
        outside = editor.open(write(tmp_path / "elsewhere" / "train.py", LEAK))
        assert [one.code for one in await editor.found(outside)] == ["MEM101"]
        missing = editor.open(root / "new.py", LEAK)
        assert [one.code for one in await editor.found(missing)] == ["MEM101"]
    async with editing() as editor:
        alone = editor.open(tmp_path / "elsewhere" / "train.py")
        assert [one.code for one in await editor.found(alone)] == ["MEM101"]


async def test_documents_that_are_no_python_files_are_left_alone(root: Path, editor: Editor) -> None:
    for uri in ("untitled:Untitled-1", "git:/train.py?ref=HEAD", "file:///%00/train.py"):
        item = types.TextDocumentItem(uri, "python", 1, LEAK)
        editor.client.text_document_did_open(types.DidOpenTextDocumentParams(item))
    item = types.TextDocumentItem((root / "readme.md").as_uri(), "markdown", 1, LEAK)
    editor.client.text_document_did_open(types.DidOpenTextDocumentParams(item))
    uri = editor.open(write(root / "train.py", LEAK))
    assert len(await editor.found(uri)) == 1
    assert editor.published == []


async def test_a_client_that_asks_is_answered_for_the_text_as_it_is_and_sent_nothing(root: Path) -> None:
    file = write(root / "train.py", LEAK)
    async with editing(root, name=NEOVIM) as editor:
        uri = editor.open(file)
        first = await editor.pull(uri)
        assert isinstance(first, types.RelatedFullDocumentDiagnosticReport)
        assert [one.code for one in first.items] == ["MEM101"]
        again = await editor.pull(uri, first.result_id)
        assert isinstance(again, types.RelatedUnchangedDocumentDiagnosticReport)
        editor.change(uri, LEAK.replace("+= loss", "+= loss.item()"))
        then = await editor.pull(uri, first.result_id)
        assert isinstance(then, types.RelatedFullDocumentDiagnosticReport) and not then.items
        assert editor.published == []


#: a function whose result another one adds up, and what it looks like once that is a number
STEPS = (
    LEAK.replace("criterion(model(x), y)", "step(model, x)") + "\n\ndef step(model, x):\n    return model(x).mean()\n"
)
COUNTED = STEPS.replace("model(x).mean()", "model(x).mean().item()")


async def test_what_an_edit_does_to_another_function_is_sent_after_what_it_does_to_its_own(
    root: Path, editor: Editor
) -> None:
    uri = editor.open(write(root / "train.py", STEPS))
    assert [one.code for one in await editor.found(uri)] == ["MEM101"]
    version = editor.change(uri, COUNTED)
    assert "MEM101" in [one.code for one in await editor.found(uri, version)]
    assert "MEM101" not in [one.code for one in await editor.found(uri, version)]
    version = editor.change(uri, STEPS)
    while "MEM101" not in [one.code for one in await editor.found(uri, version)]:
        pass


async def test_a_client_that_asks_is_told_to_ask_again_for_what_an_edit_does_to_another_function(root: Path) -> None:
    file = write(root / "train.py", STEPS)
    async with editing(root, name=NEOVIM, refreshes=True) as editor:
        uri = editor.open(file)
        await editor.pull(uri)
        editor.refreshed.clear()
        editor.change(uri, COUNTED)
        partial = await editor.pull(uri)
        await asyncio.wait_for(editor.refreshed.wait(), SECONDS)
        complete = await editor.pull(uri)
        assert isinstance(partial, types.RelatedFullDocumentDiagnosticReport)
        assert isinstance(complete, types.RelatedFullDocumentDiagnosticReport)
        assert "MEM101" in [one.code for one in partial.items]
        assert "MEM101" not in [one.code for one in complete.items]


async def test_the_configuration_of_the_project_holds_and_a_wrong_one_is_said(root: Path, editor: Editor) -> None:
    file = write(root / "train.py", LEAK)
    settings = root / "pyproject.toml"
    settings.write_text('[tool.memlint.severity]\nMEM101 = "error"\n')
    uri = editor.open(file)
    (found,) = await editor.found(uri)
    assert found.severity == types.DiagnosticSeverity.Error
    settings.write_text('[tool.memlint.severity]\nMEM101 = "fatal"\n')
    editor.written(settings)
    (found,) = await editor.found(uri)
    assert found.range.start == types.Position(0, 0) and "severity" in found.message
    assert "severity" in await editor.logged("severity")
    settings.write_text('[tool.memlint]\nignore = ["MEM101"]\n')
    editor.written(settings)
    assert await editor.found(uri) == []
    settings.write_text('[tool.memlint]\nexclude = ["train.py"]\n')
    editor.written(settings)
    assert await editor.found(uri) == []
