"""``memlint rule`` and ``memlint new-rule``."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from memlint.cli import main

Toy = Callable[..., Path]
Capture = pytest.CaptureFixture[str]
ROOT = Path(__file__).resolve().parents[2]


def headings(page: str) -> list[str]:
    return re.findall(r"^## (.+)$", page, re.MULTILINE)


@pytest.mark.parametrize("word", ["MEM101", "mem101", "loss-accumulation", "loss_accumulation"])
def test_a_page_is_printed_as_it_is_written(capsys: Capture, word: str) -> None:
    assert main(["rule", word]) == 0
    assert capsys.readouterr().out == (ROOT / "rules/mem101_loss_accumulation/README.md").read_text("utf-8")


def test_every_page_and_the_list(capsys: Capture) -> None:
    assert main(["rule", "--all"]) == 0
    pages = capsys.readouterr().out
    assert main(["rule"]) == 0
    rows = capsys.readouterr().out.splitlines()
    assert len(rows) == len(list((ROOT / "rules").glob("*/rule.py")))
    assert all(f"({row.split()[0]})" in pages for row in rows)


def test_json(capsys: Capture) -> None:
    assert main(["rule", "MEM101", "--output-format", "json"]) == 0
    row = json.loads(capsys.readouterr().out)
    assert list(row) == ["code", "name", "summary", "severity", "preview", "page"]
    assert main(["rule", "--all", "--output-format", "json"]) == 0
    assert row in json.loads(capsys.readouterr().out)


def test_an_unknown_rule_names_the_nearest(capsys: Capture) -> None:
    assert main(["rule", "los-acumulation"]) == 2
    assert "did you mean `loss-accumulation`?" in capsys.readouterr().err


def test_user_rules_are_rules(toy: Toy, capsys: Capture) -> None:
    toy({})
    assert main(["rule", "toy-leak"]) == 0
    assert capsys.readouterr().out == "# toy-leak (MEM901)\n\nToy.\n"


def test_a_new_rule_is_ready_to_run(toy: Toy, capsys: Capture) -> None:
    root = toy({"train.py": "leak(1)\n"})
    assert main(["new-rule", "MEM950", "my-rule"]) == 0
    folder = root / "lint_rules/mem950_my_rule"
    files = [str(folder / name) for name in ("rule.py", "detect.py", "README.md")]
    assert capsys.readouterr().out.split() == files
    assert main(["train.py", "--select", "MEM950", "--preview"]) == 0
    assert main(["rule", "my-rule"]) == 0
    page = (folder / "README.md").read_text("utf-8")
    assert page.splitlines()[0] == "# my-rule (MEM950)"
    assert headings(page) == headings((ROOT / "rules/mem101_loss_accumulation/README.md").read_text("utf-8"))
    for code in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        compile(code, "page", "exec")
    ruff = ["ruff", "check", "--config", str(ROOT / "pyproject.toml")]
    for command in (ruff, ["mypy", "--strict", "--explicit-package-bases"]):
        done = subprocess.run(
            [sys.executable, "-m", *command, *files[:2]], cwd=root, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr


def written(folder: Path) -> list[Path]:
    """The files in a folder that somebody wrote (Python may keep what it compiled there)."""
    return sorted(file for file in folder.rglob("*.*") if file.is_file() and file.suffix != ".pyc")


@pytest.mark.parametrize(
    ("code", "name", "said"),
    [
        ("MEM901", "fresh", "there is a rule MEM901 already"),
        ("MEM950", "toy-leak", "there is a rule toy-leak already"),
        ("MEM95", "fresh", "not a code"),
        ("XYZ950", "fresh", "not a code"),
        ("MEM950", "Not A Name", "not a name"),
        ("MEM950", "../escape", "not a name"),
        ("MEM960", "taken", "already exists"),
    ],
)
def test_nothing_is_overwritten(toy: Toy, capsys: Capture, code: str, name: str, said: str) -> None:
    root = toy({"lint_rules/mem960_taken/notes.txt": "mine"})
    before = {file: file.read_bytes() for file in written(root / "lint_rules")}
    assert main(["new-rule", code, name]) == 2
    assert said in capsys.readouterr().err
    assert {file: file.read_bytes() for file in written(root / "lint_rules")} == before


def test_without_a_place_for_rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["new-rule", "MEM950", "my-rule"]) == 2
    assert "add `rule-paths" in capsys.readouterr().err
