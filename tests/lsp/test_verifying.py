"""*Verify this script*: it runs the program when a person says so, and at no other time."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pytest_lsp")

from editor import SECONDS, Editor, editing
from lsprotocol import types
from torch_forks import forks
from torch_python import torch_python

pytestmark = pytest.mark.asyncio(loop_scope="module")

#: says that it ran, and keeps the graph of each loss
SCRIPT = """\
import pathlib
import time

import torch

pathlib.Path("ran").write_text("")
model = torch.nn.Linear(8, 8)
losses = []
for step in range(60):
    loss = model(torch.randn(4, 8)).mean()
    loss.backward()
    losses.append(loss)
    print("step", step, flush=True)
"""
WAITS = SCRIPT.replace("    print(", "    time.sleep(600)\n    print(")
TITLE = "Verify this script: run it with `memlint verify`"
NOWHERE = types.Range(types.Position(0, 0), types.Position(0, 0))


def options() -> dict[str, Any]:
    return {
        "verify": {"args": ["--python", forks(torch_python()), "--device", "cpu", "--warmup", "1", "--window", "4"]}
    }


async def offered(editor: Editor, uri: str) -> list[types.CodeAction]:
    return [one for one in await editor.actions(uri, NOWHERE) if one.command is not None]


async def test_a_finding_carries_what_was_measured(root: Path) -> None:
    file = root / "train.py"
    file.write_text(SCRIPT, "utf-8")
    async with editing(root, options=options()) as editor:
        uri = editor.open(file)
        (before,) = await editor.found(uri)
        (action,) = await offered(editor, uri)
        assert action.command is not None and not (root / "ran").exists()
        await editor.execute(action.command.command, *(action.command.arguments or ()))
        assert await editor.shown("train.py: 1 confirmed-host") is not None
        assert (root / "ran").exists()
        (found,) = await editor.found(uri)
        assert found.code == before.code == "MEM102"
        assert "measured: " in found.message and "measured: " not in before.message
        assert "graph nodes" in found.message
        assert "confirmed-host" in await editor.logged("verify ")
        (values,) = editor.progress.values()
        assert values[0]["kind"] == "begin" and values[0]["cancellable"]
        assert values[-1]["kind"] == "end"
        assert any(one["kind"] == "report" and "step" in one["message"] for one in values)
        # (what was measured is of these very bytes)
        version = editor.change(uri, ((0, 0, 0, 0), "x = 1\n"))
        (found,) = await editor.found(uri, version)
        assert "measured: " not in found.message


async def test_nothing_else_runs_a_script(root: Path) -> None:
    file = root / "train.py"
    file.write_text(SCRIPT, "utf-8")
    async with editing(root, options=options()) as editor:
        uri = editor.open(file)
        (found,) = await editor.found(uri)
        everything = await editor.actions(uri, found.range)
        for action in everything:
            await editor.resolve(action)
        for kind in ("source", "source.fixAll", "quickfix", "refactor"):
            assert [one for one in await editor.actions(uri, found.range, [kind]) if one.command is not None] == []
        assert [one.title for one in await editor.actions(uri, found.range, ["memlint.verify"])] == [TITLE]
        await editor.hover(uri, found.range.start.line, found.range.start.character)
        editor.save(uri)
        await editor.pull(uri)
        clean = root / "clean.py"
        clean.write_text("import torch\n", "utf-8")
        other = editor.open(clean)
        assert await editor.found(other) == []
        assert await offered(editor, other) == []
        notebook = editor.open_notebook(root / "a.ipynb", SCRIPT)
        assert len(await editor.found(notebook[1])) == 1
        assert await offered(editor, notebook[1]) == []
        # a run that had begun would be shown, and have come further than one that begins now
        assert editor.progress == {}
        await editor.execute("memlint.verify", other)
        await editor.shown("clean.py: ")
        assert len(editor.progress) == 1
        assert not (root / "ran").exists()


@pytest.mark.parametrize("how", ["by its progress", "by the command", "by the end of the server"])
@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs /proc to see whether the program runs")
async def test_a_run_can_be_stopped(root: Path, how: str) -> None:
    file = root / "train.py"
    file.write_text(WAITS.replace('write_text("")', "write_text(str(__import__('os').getpid()))"), "utf-8")
    async with editing(root, options=options()) as editor:
        uri = editor.open(file)
        await editor.found(uri)
        await editor.execute("memlint.verify", uri)
        await editor.execute("memlint.verify", uri)
        assert await editor.shown("already being verified")
        while not (root / "ran").exists() or not (root / "ran").read_text():
            await asyncio.sleep(0.05)
        program = int((root / "ran").read_text())
        if how == "by its progress":
            (token,) = editor.progress
            editor.client.window_work_done_progress_cancel(types.WorkDoneProgressCancelParams(token))
        elif how == "by the command":
            await editor.execute("memlint.stopVerifying", uri)
        if how != "by the end of the server":
            assert await editor.shown("the run of train.py was stopped")
            (values,) = editor.progress.values()
            assert values[-1]["kind"] == "end"
            assert [one.title for one in await offered(editor, uri)] == [TITLE]
    await asyncio.wait_for(gone(program), SECONDS)


async def gone(process: int) -> None:
    while is_running(process):
        await asyncio.sleep(0.05)


def is_running(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in ("Z", "X") and os.getpid() != process


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("raise ValueError('no data here')\n", "the program failed: ValueError: no data here"),
        ("import sys\nsys.exit(7)\n", "the program failed"),
    ],
)
async def test_a_program_that_fails_is_said(root: Path, text: str, said: str) -> None:
    file = root / "train.py"
    file.write_text(text, "utf-8")
    async with editing(root, options=options()) as editor:
        uri = editor.open(file)
        await editor.found(uri)
        await editor.execute("memlint.verify", uri)
        assert said in await editor.shown("train.py")


@pytest.mark.parametrize(
    ("settings", "unsaved", "said"),
    [
        (["--python", "/no/such/python"], False, "train.py cannot be verified: "),
        (["--no-such-option"], False, "train.py cannot be verified: "),
        ([], True, "save train.py first"),
    ],
)
async def test_what_cannot_be_verified_is_said(root: Path, settings: list[str], unsaved: bool, said: str) -> None:
    file = root / "train.py"
    file.write_text(SCRIPT, "utf-8")
    async with editing(root, options={"verify": {"args": settings}}) as editor:
        uri = editor.open(file)
        if unsaved:
            editor.change(uri, "x = 1\n")
        await editor.execute("memlint.verify", uri)
        assert await editor.shown(said)
        assert not (root / "ran").exists()


@pytest.mark.parametrize("arguments", [[], [7], [None], ["untitled:x.py"], ["file:///no/such.py"]])
async def test_a_command_that_names_no_open_script_runs_nothing(
    root: Path, arguments: list[Any], editor: Editor
) -> None:
    await editor.execute("memlint.verify", *arguments)
    await editor.execute("memlint.stopVerifying", *arguments)
    assert await editor.shown("there is no open script")
