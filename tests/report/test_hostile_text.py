"""Names, messages and source with control characters: no output of text is steered, and no line is forged."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import memlint
from memlint.cli import main
from memlint.printable import printable

Toy = Callable[..., Path]
Capture = pytest.CaptureFixture[str]
#: what clears a screen, ends a line, goes back on it, sets a title, and turns the direction of text
CONTROL = "\x1b[2J", "\n", "\r", "\x9b2J", "\x1b]0;x\x07", "\u202e", "\u2028", "\x7f", "\x00"
FORGED = "train.py:1:1: error MEM101[loss-accumulation] forged"


def is_clean(text: str) -> bool:
    return all(char == "\n" or printable(char) == char for char in text)


def test_what_is_printable_stays() -> None:
    for text in ("a b", "größe", "日本語.py", "naïve – “x” 👩‍🔬", "\u00a0", "a\\b"):
        assert printable(text) == text
    assert printable("".join(CONTROL)) == ("\\x1b[2J\\n\\r\\x9b2J\\x1b]0;x\\x07\\u202e\\u2028\\x7f\\x00")


@pytest.mark.parametrize("control", [one for one in CONTROL if "\0" not in one], ids=ascii)
def test_a_name_forges_nothing(control: str, toy: Toy, capsys: Capture) -> None:
    name = f"a{control}{FORGED}"
    toy({f"{name}.py": "leak(1)\n", f"{name}/b.py": "leak(1)\nbroken(", f"{name}.txt": ""})
    for words in (["."], [".", "--output-format", "concise"], [".", "--verbose", "--statistics"], [f"{name}.txt"]):
        main([*words, "--no-cache"])
        out, error = capsys.readouterr()
        assert is_clean(out) and is_clean(error)
        assert not any(line.startswith(FORGED) for line in (out + error).splitlines())
    main([".", "--output-format", "json"])
    assert printable(name) in capsys.readouterr().out.replace("\\\\", "\\")


def test_names_that_look_alike_when_escaped_are_two(toy: Toy) -> None:
    toy({"a\nb.py": "leak(1)\n", "a\\nb.py": "leak(1)\n"})
    found = memlint.lint(["."])
    assert sorted(one.path for one in found.findings) == ["a\\\\nb.py", "a\\nb.py"]
    assert found.summary.files == 2


@pytest.mark.parametrize("style", ["text", "concise"])
def test_source_and_messages_are_escaped(
    style: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    """Text between quotes may hold any character, and messages name expressions."""
    control = "".join(one for one in CONTROL if one not in ("\n", "\r", "\0"))
    (tmp_path / "train.py").write_text(
        "import torch\n\n\n"
        "def train(model, loader, optimizer, sums):\n"
        "    for x, y in loader:\n"
        "        loss = torch.nn.functional.mse_loss(model(x), y)\n"
        "        optimizer.zero_grad()\n"
        "        loss.backward()\n"
        "        optimizer.step()\n"
        f'        sums["{control}"] += loss  # {control}\n'
        "    return sums\n"
    )
    monkeypatch.chdir(tmp_path)
    assert main(["train.py", "--output-format", style]) == 1
    out, error = capsys.readouterr()
    assert "MEM10" in out
    assert is_clean(out) and is_clean(error)


def test_the_working_directory_and_the_configuration(
    toy: Toy, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = toy({f"x\n{FORGED}/memlint.toml": "selct = 1", f"x\n{FORGED}/a.py": "leak(1)\n"})
    monkeypatch.chdir(root / f"x\n{FORGED}")
    for words in (
        ["a.py"],
        ["clean"],
        ["rule"],
        ["no.py"],
        ["a.py", "--config", f"y\n{FORGED}"],
        ["a.py", f"-o{FORGED}\n/x"],
    ):
        main(words)
        out, error = capsys.readouterr()
        assert is_clean(out) and is_clean(error)
        assert not any(line.startswith(FORGED) for line in (out + error).splitlines())


def test_the_page_of_a_rule(toy: Toy, capsys: Capture) -> None:
    toy({"a.py": "", "lint_rules/mem901_toy_leak/README.md": "# toy\n\n\x1b[2Jx\u202e\n"})
    assert main(["rule", "MEM901"]) == 0
    assert capsys.readouterr().out == "# toy\n\n\\x1b[2Jx\\u202e\n"


def test_flake8_shows_no_control_characters(tmp_path: Path) -> None:
    pytest.importorskip("flake8")
    (tmp_path / "pyproject.toml").write_text('[tool.memlint]\nrule-paths = ["a\\u001b[2J"]\n')
    (tmp_path / "a.py").write_text("import torch\n")
    done = subprocess.run(
        [sys.executable, "-m", "flake8", "--select", "MEM", "a.py"], cwd=tmp_path, capture_output=True, text=True
    )
    assert "rule-paths" in done.stdout + done.stderr
    assert is_clean(done.stdout + done.stderr)


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="no terminals here")
def test_a_diff_on_a_terminal(tmp_path: Path) -> None:
    """Piped, it is what `patch` takes."""
    (tmp_path / "train.py").write_text(
        "import torch\n\n\ndef train(model, loader, optimizer):\n    total = 0.0\n    for x, y in loader:\n"
        "        loss = torch.nn.functional.mse_loss(model(x), y)\n        optimizer.zero_grad()\n"
        "        loss.backward()\n        optimizer.step()\n        total += loss  # \x1b[2J\n    print(float(total))\n"
    )
    command = [sys.executable, "-m", "memlint", "train.py", "--diff", "--unsafe-fixes"]
    piped = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)
    assert piped.returncode == 1 and b"\x1b[2J" in piped.stdout
    leader, follower = os.openpty()
    subprocess.run(command, cwd=tmp_path, stdout=follower, stderr=subprocess.DEVNULL, check=False)
    os.close(follower)
    seen = os.read(leader, 100_000)
    os.close(leader)
    assert b"\\x1b[2J" in seen and b"\x1b" not in seen


def test_json_says_the_escaped_name(toy: Toy, capsys: Capture) -> None:
    toy({"a\x1b.py": "leak(1)\n"})
    main([".", "--output-format", "json"])
    (row,) = json.loads(capsys.readouterr().out)["findings"]
    assert row["path"] == "a\\x1b.py"
