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
FILES = {name: text for _, name, text in re.findall(r'(?ms)^(```+)\w+ title="([^"]+)"\n(.*?)^\1$', PAGE)}
NEW, FIND, FIX, TEST, MEASURE = own(pages.ROOT / "docs" / "writing-rules.md")
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
    assert "MEM901: all is as marked in 2 programs" in run(TEST, tmp_path).stdout


def test_the_page_shows_what_is_found(folder: Path) -> None:
    done = run(FIND, folder)
    assert done.returncode == 1, done.stderr
    assert done.stdout.startswith(SHOWN)
    assert done.stdout.count("MEM901") == 1


def test_the_page_shows_what_is_fixed(folder: Path) -> None:
    run(FIX, folder)
    assert (folder / "train.py").read_text("utf-8") == FILES["train.py, fixed"]


def test_the_programs_of_the_page_are_tests(folder: Path) -> None:
    done = run(TEST, folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("MEM901: all is as marked in 4 programs of ")


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (
            "eye(classes)[:, :2]",
            "eye(classes)[[0]]  # error: [MEM901]",
            "Columns: train.py:5 is marked, and nothing is found",
        ),
        (
            "torch.eye(classes)[labels]  # error: [MEM901]",
            "torch.eye(classes)[labels]",
            "Labels of a batch: train.py:5 is not marked, and something is found",
        ),
        (
            "rows[labels]",
            "torch.eye(classes)[labels]  # todo-error: [MEM901]",
            "A matrix that is kept: train.py:6 is found: make its todo-error an error",
        ),
        (
            "rows[labels]",
            "rows[labels]  # todo-ok: [MEM901]",
            "A matrix that is kept: train.py:6 is no false alarm any more: take its todo-ok away",
        ),
        (
            "eye(classes)[:, :2]",
            "eye(classes)[classes]  # error: [MEM901]",
            "Columns: it is under Good, and a line is marked as an error",
        ),
        (
            "eye(classes, device=labels.device)[labels.long()]  # error: [MEM901]",
            "eye(classes)",
            "On the device, by another name: it is under Bad, and no line is marked as an error",
        ),
        ("(labels, classes).float()", "(labels)", "Labels of a batch: train.py is not fixed as shown, but:"),
    ],
)
def test_what_is_not_as_the_page_says_is_told(before: str, after: str, said: str, folder: Path) -> None:
    page = folder / ROOM / "README.md"
    text = page.read_text("utf-8")
    assert before in text
    page.write_text(text.replace(before, after, 1), "utf-8")
    done = run(TEST, folder)
    assert done.returncode == 1, done.stderr
    *lines, last = done.stdout.splitlines()
    assert said in lines and re.match("MEM901: [12] mistakes? in 4 programs of ", last), done.stdout


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("memlint rule MEM901 --test", "MEM901 is a rule of the project, which runs with --local-rules only"),
        ("memlint rule --test", "name the rule to test"),
    ],
)
def test_a_rule_that_may_not_run_is_not_tested(command: str, said: str, folder: Path) -> None:
    done = run(command, folder, MEMLINT_LOCAL_RULES="")
    assert done.returncode == 2 and said in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("# identity-rows (MEM901)\n", "has no programs"),
        ("## Bad\n\n```python\nx = 1\n```\n", "a block of code needs a ### heading above it"),
        ("## Bad\n\n### One\n\n```python\nx = 1  # error: MEM901\n```\n", "train.py:1: not a marker"),
        ('## Bad\n\n### One\n\n```python title="../x.py"\nx = 1\n```\n', "../x.py lies outside of the folder"),
    ],
)
def test_a_page_that_cannot_be_tested_is_an_error(text: str, said: str, folder: Path) -> None:
    (folder / ROOM / "README.md").write_text(text, "utf-8")
    done = run(TEST, folder)
    assert done.returncode == 2 and said in " ".join(done.stderr.split()), done.stdout + done.stderr


def test_our_own_rules_are_tested_so(tmp_path: Path) -> None:
    done = run("memlint rule MEM404 --test", tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


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
