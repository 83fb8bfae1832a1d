"""Hovers: what the analysis knows of the values at a place, in files and in cells."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

pytest.importorskip("pytest_lsp")

from editor import EVALUATION, LEAK, SECONDS, Editor, editing
from lsprotocol import types

pytestmark = pytest.mark.asyncio(loop_scope="module")

BACKWARD = LEAK.splitlines().index("        loss.backward()")


@pytest.mark.parametrize(
    ("line", "character", "said"),
    [
        pytest.param(BACKWARD, 10, ["`loss`: ", "with the autograd graph of `model`", "grad mode: on"], id="a value"),
        pytest.param(BACKWARD - 1, 26, ["`model`: ", "a module"], id="a module"),
        pytest.param(BACKWARD - 1, 31, ["`model(x)`: ", "`x`: "], id="a call, and what it is given"),
        pytest.param(BACKWARD, 10, ["repeated by: `for (x, y) in loader` at line 6"], id="what repeats the line"),
        pytest.param(BACKWARD + 3, 18, ["MEM101", "`loss`: ", "# loss-accumulation"], id="a finding, values and page"),
        pytest.param(BACKWARD, 2, [], id="blanks"),
        pytest.param(2, 0, [], id="an empty line"),
        pytest.param(3, 6, [], id="the name of a definition"),
        pytest.param(10_000, 0, [], id="behind the end"),
    ],
)
async def test_what_is_said_of_a_place(root: Path, line: int, character: int, said: list[str], editor: Editor) -> None:
    file = root / "train.py"
    file.write_text(LEAK, "utf-8")
    uri, text, deadline = editor.open(file), "", time.monotonic() + SECONDS
    # (on a finding a hover does not wait for long)
    while not text or ("MEM101" in text and "`loss`: " not in text):
        text = await editor.hover(uri, line, character)
        if not said or time.monotonic() > deadline:
            break
    assert [part for part in said if part not in text] == [], text
    assert said or not text


async def test_a_hover_is_of_the_unsaved_text_and_waits_for_it(root: Path, editor: Editor) -> None:
    file = root / "train.py"
    file.write_text(LEAK, "utf-8")
    uri = editor.open(file)
    editor.change(uri, ((BACKWARD - 1, 0, BACKWARD - 1, 0), "        # ∑ 😀\n"), ((0, 0, 0, 0), "x = '😀' + y\n"))
    assert "with the autograd graph of `model` (line 9)" in await editor.hover(uri, BACKWARD + 2, 10)
    # (characters are counted as the client counts them)
    assert "`y`: " in await editor.hover(uri, 0, 11)


async def test_a_hover_in_a_cell_knows_what_other_cells_did(root: Path, editor: Editor) -> None:
    first = "import torch\nmodel = torch.nn.Linear(9, 9).cuda()\n"
    notebook = editor.open_notebook(root / "a.ipynb", first, ("markdown", "#"), "!ls\nout = model(x)\n")
    text = await editor.hover(notebook[3], 1, 7)
    assert "`model`: a module" in text
    assert "with the autograd graph of `model` (cell 3, line 2)" in await editor.hover(notebook[3], 1, 1)
    assert await editor.hover(notebook[3], 0, 2) == ""
    assert await editor.hover(notebook[2], 0, 0) == ""


async def test_why_a_rule_is_silent_is_said_where_there_is_a_candidate(root: Path, editor: Editor) -> None:
    text = EVALUATION.replace("seen = 0", "seen = []")
    text = text.replace("seen += int(model(x).argmax())", "seen.append(model(x))")
    file = root / "evaluate.py"
    file.write_text(text + "\n\nwith torch.no_grad():\n    evaluate(torch.nn.Linear(9, 9), loader)\n", "utf-8")
    line = text.splitlines().index("        seen.append(model(x))")
    assert "not reported" in await editor.hover(editor.open(file), line, 22)


async def test_the_last_of_many_hovers_is_answered_and_typing_goes_first(root: Path, editor: Editor) -> None:
    file = root / "train.py"
    file.write_text(LEAK, "utf-8")
    uri = editor.open(file)
    await editor.found(uri)
    place = types.Position(BACKWARD, 10)
    params = types.HoverParams(types.TextDocumentIdentifier(uri), place)
    asked = [asyncio.ensure_future(editor.client.text_document_hover_async(params)) for _ in range(20)]
    last = await asyncio.wait_for(asked[-1], 60)
    assert last is not None and isinstance(last.contents, types.MarkupContent)
    assert "with the autograd graph" in last.contents.value
    await asyncio.wait_for(asyncio.gather(*asked), 60)
    running = asyncio.ensure_future(editor.client.text_document_hover_async(params))
    await asyncio.sleep(0)
    version = editor.change(uri, ((BACKWARD + 3, 17, BACKWARD + 3, 21), "loss.item()"))
    assert await editor.found(uri, version) == []
    await asyncio.wait_for(running, 60)


async def test_a_client_that_lets_go_of_a_hover_gets_the_next(root: Path, editor: Editor) -> None:
    file = root / "train.py"
    file.write_text(LEAK, "utf-8")
    uri = editor.open(file)
    await editor.found(uri)
    params = types.HoverParams(types.TextDocumentIdentifier(uri), types.Position(BACKWARD, 10))
    for _ in range(3):
        request = editor.client.protocol.send_request(types.TEXT_DOCUMENT_HOVER, params, msg_id="mine")
        editor.client.cancel_request(types.CancelParams("mine"))
        await asyncio.wait([asyncio.wrap_future(request)], timeout=60)
    assert "with the autograd graph" in await editor.hover(uri, BACKWARD, 10)


async def test_a_setting_turns_it_off(root: Path) -> None:
    file = root / "train.py"
    file.write_text(LEAK, "utf-8")
    async with editing(root, options={"hover": {"explain": False}}) as editor:
        uri = editor.open(file)
        assert await editor.hover(uri, BACKWARD, 10) == ""
        assert "loss-accumulation" in await editor.hover(uri, BACKWARD + 3, 10)
