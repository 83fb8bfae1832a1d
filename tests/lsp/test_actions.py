"""Hovers and code actions: what is said of a finding, and what the client is offered to do about it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pytest_lsp")

from editor import CODE, EVALUATION, LEAK, NEOVIM, ROOT, Editor, applied, editing
from lsprotocol import types

pytestmark = pytest.mark.asyncio(loop_scope="module")

#: a safe fix, since all that happens with the sum is seen
SAFE = LEAK.replace("return total", "print(total.item())")


def fixed_by_command(file: Path) -> str:
    """What ``memlint --fix`` makes of a file."""
    command = [sys.executable, "-m", "memlint", str(file), "--fix-only", "--no-cache"]
    subprocess.run(command, cwd=file.parent, env={"PYTHONPATH": str(ROOT)}, check=True, capture_output=True)
    return file.read_text("utf-8")


async def test_a_hover_says_what_why_and_shows_the_page(root: Path, editor: Editor) -> None:
    file = root / "train.py"
    file.write_text(LEAK)
    uri = editor.open(file)
    (found,) = await editor.found(uri)
    text = await editor.hover(uri, found.range.start.line, found.range.start.character + 3)
    assert text.startswith("**MEM101** `loss-accumulation` (warning, high confidence)\n\n`total` keeps")
    assert "**Help**: add `loss.item()`" in text
    assert f"({uri}#L7)" in text
    assert "# loss-accumulation (MEM101)" in text and "## Why it costs memory" in text
    assert await editor.hover(uri, 2, 0) == ""
    assert await editor.hover(uri, 10_000, 10_000) == ""


async def test_words_of_the_program_are_no_markup() -> None:
    from memlint.lsp.hover import plain

    assert plain("`a_b_c` keeps [x](http://y) <b> *z*") == "`a_b_c` keeps \\[x\\](http://y) \\<b\\> \\*z\\*"
    assert plain("a ` b_c") == "a \\` b\\_c"


@pytest.mark.parametrize("name", [CODE, NEOVIM])
async def test_a_safe_fix_is_preferred_and_makes_what_the_command_makes(root: Path, name: str) -> None:
    file = root / "train.py"
    file.write_text(SAFE)
    async with editing(root, name=name, encodings=["utf-16"]) as editor:
        uri = editor.open(file)
        line = SAFE.splitlines().index("        total += loss")
        place = types.Range(types.Position(line, 10), types.Position(line, 10))
        actions = await editor.actions(uri, place)
        first = actions[0]
        assert (first.title, first.kind, first.is_preferred) == ("MEM101: Detach `loss`", "quickfix", True)
        assert [one.code for one in first.diagnostics or ()] == ["MEM101"]
        assert first.edit is not None
        if name == CODE:  # the other takes no versions
            (change,) = first.edit.document_changes or ()
            assert isinstance(change, types.TextDocumentEdit) and change.text_document.version == 1
        assert applied(SAFE, first.edit, uri) == SAFE.replace("+= loss", "+= loss.detach()") == fixed_by_command(file)
        # nothing is offered elsewhere but for the whole file
        nowhere = types.Range(types.Position(0, 0), types.Position(0, 1))
        assert [one.kind for one in await editor.actions(uri, nowhere)] == ["source.fixAll.memlint", "memlint.verify"]


async def test_unsafe_fixes_and_alternatives_say_what_they_are(root: Path) -> None:
    file = root / "train.py"
    unsafe = LEAK.replace("model: torch.nn.Module", "model")
    file.write_text(unsafe + "\n\n" + EVALUATION.removeprefix("import torch\n\n\n"))
    async with editing(root, options={"minConfidence": "low"}) as editor:
        uri = editor.open(file)
        whole = types.Range(types.Position(0, 0), types.Position(100, 0))
        actions = await editor.actions(uri, whole, only=["quickfix"])
        titles = [one.title for one in actions]
        marked = [one for one in titles if "(unsafe: " in one]
        shown = [one for one in titles if "(not part of --fix" in one]
        assert marked and shown, titles
        assert not any(one.is_preferred for one in actions if one.title in {*marked, *shown})
        assert all(one.edit is not None for one in actions)
        mode = next(one for one in actions if "inference_mode" in one.title)
        assert "torch.inference_mode()" in applied(file.read_text(), mode.edit, uri)


async def test_a_finding_is_suppressed_by_a_comment_on_its_line(root: Path, editor: Editor) -> None:
    text = LEAK.replace("total += loss", 'total += loss  # "∑ 😀"')
    file = root / "train.py"
    file.write_text(text, "utf-8")
    uri = editor.open(file)
    (found,) = await editor.found(uri)
    (action,) = [one for one in await editor.actions(uri, found.range) if one.title.startswith("Ignore")]
    assert action.title == "Ignore MEM101 on this line"
    after = applied(text, action.edit, uri)
    assert after == text.replace('😀"', '😀"  # memlint: ignore[MEM101]')
    version = editor.change(uri, after)
    assert await editor.found(uri, version) == []


async def test_what_is_about_the_file_itself_cannot_be_suppressed(root: Path, editor: Editor) -> None:
    file = root / "train.py"
    file.write_text("import torch\nx = 1  # memlint: ignore[MEM101]\n")
    uri = editor.open(file)
    (found,) = await editor.found(uri)
    assert found.code == "MEM001"
    assert not any(one.title.startswith("Ignore") for one in await editor.actions(uri, found.range))


async def test_all_safe_fixes_of_unsaved_text_at_once(root: Path) -> None:
    file = root / "train.py"
    file.write_text("")
    twice = SAFE + "\n\n" + SAFE.replace("def train", "def train_again").removeprefix("import torch\n\n\n")
    place = types.Range(types.Position(0, 0), types.Position(0, 0))
    async with editing(root, name=NEOVIM, encodings=["utf-16"]) as editor:
        uri = editor.open(file, twice)
        (action,) = await editor.actions(uri, place, only=["source.fixAll"])
        assert (action.title, action.kind) == ("Fix all safe memlint findings", "source.fixAll.memlint")
        done = await editor.resolve(action)
        fixed = twice.replace("+= loss", "+= loss.detach()")
        assert applied(twice, done.edit, uri) == fixed
        assert file.read_text() == ""
        editor.change(uri, fixed)
        assert await editor.actions(uri, place, only=["source.fixAll"]) == []
        assert await editor.actions(uri, place, only=["refactor"]) == []
    async with editing(root, encodings=["utf-16"]) as editor:  # a client that resolves nothing gets the edits at once
        editor.client.capabilities.text_document.code_action.resolve_support = None
        uri = editor.open(file, twice)
        (action,) = await editor.actions(uri, place, only=["source.fixAll.memlint"])
        done = action if action.edit is not None else await editor.resolve(action)
        assert applied(twice, done.edit, uri) == fixed


async def test_no_fix_is_offered_that_an_edit_of_another_function_has_made_wrong(root: Path, editor: Editor) -> None:
    text = (
        SAFE.replace("criterion(model(x), y)", "step(model, x)")
        + "\n\ndef step(model, x):\n    return model(x).mean()\n"
    )
    file = root / "train.py"
    file.write_text(text)
    uri = editor.open(file)
    line = text.splitlines().index("        total += loss")
    place = types.Range(types.Position(line, 10), types.Position(line, 10))
    assert "MEM101: Detach `loss`" in [one.title for one in await editor.actions(uri, place)]
    editor.change(uri, text.replace(".mean()", ".mean().item()"))
    assert "MEM101: Detach `loss`" not in [one.title for one in await editor.actions(uri, place)]


async def test_an_action_for_a_document_that_is_gone_does_nothing(root: Path, editor: Editor) -> None:
    action = types.CodeAction("x", kind="source.fixAll.memlint", data={"uri": (root / "gone.py").as_uri()})
    assert (await editor.resolve(action)).edit is None
    assert (await editor.resolve(types.CodeAction("x", data=["?"]))).edit is None
