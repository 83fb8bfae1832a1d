"""docs/writing-rules.md makes a rule from an empty folder: its files are written, and its commands run, in order."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pages
import pytest
from doc_commands import own, run
from torch_python import torch_python

PAGE = (pages.ROOT / "docs" / "writing-rules.md").read_text("utf-8")
#: the files that the page shows, by name, and the commands
FILES = dict(re.findall(r'(?s)```\w+ title="([^"]+)"\n(.*?)```', PAGE))
NEW, FIND, FIX, MEASURE = own(pages.ROOT / "docs" / "writing-rules.md")
(SHOWN,) = re.findall(r"(?s)```text\n(.*?)```", PAGE)
ROOM = "lint_rules/mem901_identity_rows"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The reader's folder when all files of the page are written."""
    (tmp_path / "pyproject.toml").write_text(FILES["pyproject.toml"], encoding="utf-8")
    (tmp_path / "lint_rules").mkdir()
    made = run(NEW, tmp_path)
    assert made.returncode == 0, made.stderr
    names = {path.name for path in (tmp_path / ROOM).iterdir()}
    assert names == {"rule.py", "detect.py", "README.md"}
    for name, text in FILES.items():
        if " " not in name:
            (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def test_the_new_rule_runs_and_finds_nothing(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(FILES["pyproject.toml"], encoding="utf-8")
    (tmp_path / "train.py").write_text(FILES["train.py"], encoding="utf-8")
    (tmp_path / "lint_rules").mkdir()
    assert run(NEW, tmp_path).returncode == 0
    done = run(f"{FIND} --preview", tmp_path)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr


def test_the_page_shows_what_is_found(folder: Path) -> None:
    done = run(FIND, folder)
    assert done.returncode == 1, done.stderr
    assert done.stdout.startswith(SHOWN)
    assert done.stdout.count("MEM901") == 1


def test_the_page_shows_what_is_fixed(folder: Path) -> None:
    run(FIX, folder)
    assert (folder / "train.py").read_text("utf-8") == FILES["train.py, fixed"]


def test_explaining_a_line_asks_the_rule_of_the_page(folder: Path) -> None:
    shown = run("memlint explain train.py:5 --rule MEM901 --local-rules", folder).stdout
    assert "MEM901[identity-rows]: reported" in shown
    silent = run("memlint explain train.py:9 --rule MEM901 --local-rules", folder).stdout
    assert "MEM901 looks for rows that are read of a `torch.eye(…)` made for them" in silent
    assert "whether a value tells which rows are read: the index is no slice, and no literal: no" in silent


def test_type_checkers_and_linters_take_the_files_of_the_page(folder: Path) -> None:
    files = [str(folder / ROOM / name) for name in ("rule.py", "detect.py")]
    ruff = ["ruff", "check", "--config", str(pages.ROOT / "pyproject.toml")]
    for command in (ruff, ["mypy", "--strict", "--explicit-package-bases"]):
        done = subprocess.run(
            [sys.executable, "-m", *command, *files], cwd=folder, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_the_probe_of_the_page_shows_its_claim(folder: Path) -> None:
    done = run(f"{MEASURE} --python {torch_python()}", folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 rules show what they claim" in done.stdout
