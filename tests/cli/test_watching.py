"""``--watch`` lints again when a file changes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from memlint.cli import main

Toy = Callable[..., Path]
Capture = pytest.CaptureFixture[str]

ROOT = Path(__file__).resolve().parents[2]
LEAK = (
    "import torch\n\n\ndef train(model, loader):\n    total = 0\n    for x in loader:\n"
    "        loss = model(x).sum()\n        loss.backward()\n        total += loss\n    return total\n"
)


def test_a_change_is_linted_and_interrupting_ends(tmp_path: Path) -> None:
    """A file, a file beside it and a broken configuration, each a run; what is no source is none."""
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "train.py").write_text(LEAK)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "memlint", ".", "--watch", "--output-format", "concise"]
    process = subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    timer = threading.Timer(120, process.kill)
    timer.start()

    def next_run() -> str:
        assert process.stdout is not None
        rows = []
        while (row := process.stdout.readline()) and "watching for changes" not in row:
            rows.append(row)
        assert row, rows
        return "".join(rows)

    try:
        assert "train.py:9:9" in next_run()
        (tmp_path / "notes.txt").write_text("nothing to lint")
        (tmp_path / "train.py").write_text(LEAK.replace("+= loss", "+= loss.item()"))
        assert "Found nothing in 1 file" in next_run()
        (tmp_path / "other.py").write_text(LEAK)
        assert "other.py:9:9" in next_run()
        (tmp_path / "pyproject.toml").write_text("[tool.memlint]\nselct = []\n")
        assert "did you mean `select`?" in next_run()
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
    finally:
        timer.cancel()
        process.kill()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(["-", "--watch"], "not standard input"), ([".", "--watch", "--fix"], "cannot be combined")],
)
def test_what_cannot_be_watched(toy: Toy, capsys: Capture, arguments: list[str], said: str) -> None:
    toy({"a.py": "leak(1)\n"})
    assert main(arguments) == 2
    assert said in capsys.readouterr().err


def test_without_watchfiles_it_says_how_to_get_it(toy: Toy, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    toy({"a.py": "leak(1)\n"})
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert main([".", "--watch"]) == 2
    captured = capsys.readouterr()
    assert "torch-memlint[watch]" in captured.err and not captured.out
