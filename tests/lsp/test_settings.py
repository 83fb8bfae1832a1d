"""What the user sets in the editor: as it starts, while it runs, wrongly."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pytest_lsp")

from editor import EVALUATION, LEAK, NEOVIM, editing
from lsprotocol import types

from memlint.lsp.settings import Settings, settings_of

MIXED = LEAK + "\n\n" + EVALUATION.removeprefix("import torch\n\n\n")


@pytest.mark.parametrize(
    ("sent", "settings"),
    [
        (None, Settings()),
        ({}, Settings()),
        ({"memlint": {"preview": True}}, Settings(preview=True)),
        ({"settings": {"memlint": {"preview": True}}}, Settings(preview=True)),
        ({"settings": {"preview": True}}, Settings(preview=True)),
        ({"preview": True, "minConfidence": "low"}, Settings(preview=True, min_confidence="low")),
        ({"memlint.lint.run": "onSave"}, Settings(run="onSave")),
        ({"lint": {"run": "onSave"}, "trace": {"server": "off"}, "path": "x"}, Settings(run="onSave")),
        ({"select": ["MEM1"], "ignore": ["MEM101"]}, Settings(select=("MEM1",), ignore=("MEM101",))),
        # what an editor sends for what nobody has filled in
        ({"select": None, "ignore": None, "minConfidence": None}, Settings()),
        ({"select": [], "ignore": []}, Settings()),
        ({"python": {"path": "x"}}, Settings()),
        ([1], Settings()),
    ],
)
def test_settings_come_in_the_forms_that_clients_have(sent: Any, settings: Settings) -> None:
    assert settings_of(sent) == (settings, [])


def test_what_comes_later_stands_over_what_a_client_began_with() -> None:
    first = {"preview": True, "select": ["MEM1"], "lint": {"run": "onSave"}}
    assert settings_of(first, None)[0] == settings_of(first, {})[0] == settings_of(first)[0]
    later = {"memlint": {"select": None, "lint.run": "onType", "ignore": ["MEM101"]}}
    assert settings_of(first, later) == (Settings(preview=True, ignore=("MEM101",)), [])


@pytest.mark.parametrize(
    ("sent", "settings", "said"),
    [
        ({"minConfidnce": "low", "preview": True}, Settings(preview=True), "did you mean `minConfidence`?"),
        ({"minConfidence": "some"}, Settings(), "one of high, medium, low"),
        ({"lint": {"run": "always"}}, Settings(), "one of onType, onSave"),
        ({"preview": "yes", "select": ["MEM1"]}, Settings(select=("MEM1",)), "`memlint.preview`"),
        ({"select": [1]}, Settings(), "`memlint.select`"),
    ],
)
def test_a_wrong_setting_is_said_and_the_others_hold(sent: Any, settings: Settings, said: str) -> None:
    found, (problem,) = settings_of(sent)
    assert found == settings and said in problem


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "train.py").write_text(MIXED)
    return tmp_path / "train.py"


@pytest.mark.asyncio
async def test_settings_hold_from_the_start_and_change_while_it_runs(file: Path) -> None:
    async with editing(file.parent, options={"settings": {"ignore": ["MEM101"], "nonsense": 1}}) as editor:

        def send(settings: Any) -> None:
            params = types.DidChangeConfigurationParams(settings)
            editor.client.workspace_did_change_configuration(params)

        uri = editor.open(file)
        codes = [one.code for one in await editor.found(uri)]
        assert codes and "MEM101" not in codes
        send({})
        version = editor.change(uri, ((0, 0, 0, 0), "\n"))
        assert [one.code for one in await editor.found(uri, version)] == codes
        send({"memlint": {"ignore": None, "select": ["MEM201"]}})
        assert [one.code for one in await editor.found(uri, version)] == ["MEM201"]
        assert "memlint.nonsense" in await editor.logged("nonsense")
        send({"memlint": {"select": ["MEM101"]}})
        (found,) = await editor.found(uri, version)  # (what the client began with ignores this one)
        assert "no rule is selected" in found.message
        send({"memlint": {"ignore": None, "select": ["MEM101"]}})
        assert [one.code for one in await editor.found(uri, version)] == ["MEM101"]
        send({"memlint": {"select": ["MEM999"]}})
        (found,) = await editor.found(uri, version)
        assert "MEM999" in found.message and found.severity == types.DiagnosticSeverity.Error
        send({"memlint": {"enable": False}})
        assert await editor.found(uri, None) == []
        version = editor.change(uri, LEAK)
        send({"memlint": {"enable": True, "ignore": []}})
        assert [one.code for one in await editor.found(uri, version)] == ["MEM101"]


@pytest.mark.asyncio
async def test_a_client_that_sends_no_settings_is_asked(file: Path) -> None:
    async with editing(file.parent, settings={"memlint": {"select": ["MEM101"]}}) as editor:
        uri = editor.open(file)
        assert len(await editor.found(uri)) > 1
        editor.client.workspace_did_change_configuration(types.DidChangeConfigurationParams(None))
        assert [one.code for one in await editor.found(uri)] == ["MEM101"]


@pytest.mark.asyncio
async def test_on_save_says_nothing_while_a_person_types(file: Path) -> None:
    file.write_text(LEAK)
    async with editing(file.parent, options={"lint": {"run": "onSave"}}) as editor:
        uri = editor.open(file)
        assert len(await editor.found(uri)) == 1
        fixed = LEAK.replace("+= loss", "+= loss.item()")
        version = editor.change(uri, fixed)
        place = types.Range(types.Position(0, 0), types.Position(99, 0))
        assert await editor.actions(uri, place) == []  # (which would be for another text)
        await asyncio.sleep(0.5)
        assert editor.published == []
        file.write_text(fixed)
        editor.save(uri)
        assert await editor.found(uri, version) == []


@pytest.mark.asyncio
async def test_on_save_answers_a_client_that_asks_with_what_was_saved(file: Path) -> None:
    file.write_text(LEAK)
    async with editing(file.parent, name=NEOVIM, options={"lint": {"run": "onSave"}}) as editor:
        uri = editor.open(file)
        first = await editor.pull(uri)
        assert isinstance(first, types.RelatedFullDocumentDiagnosticReport) and len(first.items) == 1
        editor.change(uri, "")
        again = await editor.pull(uri, first.result_id)
        assert isinstance(again, types.RelatedUnchangedDocumentDiagnosticReport)
        editor.save(uri)
        then = await editor.pull(uri, first.result_id)
        assert isinstance(then, types.RelatedFullDocumentDiagnosticReport) and not then.items


@pytest.mark.asyncio
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
async def test_places_are_in_the_units_that_were_agreed_on(file: Path, encoding: str) -> None:
    before = 's = "∑😀é"; '
    text = f"# \x0cä\u2028ö\n{LEAK.replace('total += loss', before + 'total += loss')}"
    file.write_text(text, "utf-8")
    size = {"utf-8": 1, "utf-16": 2, "utf-32": 4}[encoding]
    codec = encoding.replace("-16", "-16-le").replace("-32", "-32-le")
    start = 8 + len(before.encode(codec)) // size
    async with editing(file.parent, encodings=["no-such", encoding]) as editor:
        assert editor.encoding.endswith(encoding.replace("-", "").title()) or editor.encoding == encoding
        uri = editor.open(file)
        (found,) = await editor.found(uri)
        line = LEAK.splitlines().index("        total += loss") + 1
        assert found.range == types.Range(types.Position(line, start), types.Position(line, start + 13))
        # and those of changes are read so
        version = editor.change(uri, ((line, start + 9, line, start + 13), "loss.item()"))
        assert await editor.found(uri, version) == []
        inside = 8 + len('s = "∑'.encode(codec)) // size
        editor.change(uri, ((line, inside, line, inside), "😀"))
        more = len("😀".encode(codec)) // size
        version = editor.change(uri, ((line, start + more, line, start + more), "x = 1; "))
        assert await editor.found(uri, version) == []


@pytest.mark.asyncio
async def test_folders_come_and_go(tmp_path: Path, file: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "train.py").write_text(LEAK)
    folder = types.WorkspaceFolder(other.as_uri(), "other")
    async with editing(tmp_path) as editor:
        uri = editor.open(other / "train.py")
        assert len(await editor.found(uri)) == 1
        for event in (
            types.WorkspaceFoldersChangeEvent([folder], []),
            types.WorkspaceFoldersChangeEvent([], [folder]),
        ):
            params = types.DidChangeWorkspaceFoldersParams(event)
            editor.client.workspace_did_change_workspace_folders(params)
            assert len(await editor.found(uri)) == 1
