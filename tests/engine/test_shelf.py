"""The indexes of files that earlier runs read: the same findings with them and without, whatever happens to them."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cached_runs import run

from memlint.analysis.index.word_index import Words
from memlint.engine.options import Options
from memlint.engine.run import run as lint
from memlint.engine.store import shelf as shelving
from memlint.engine.store.database import FOLDER, VARIABLE
from memlint.engine.store.shelf import Shelf

TRAIN = """
import torch
from meters import Meter


def train(model, loader, optimizer):
    meter = Meter()
    for x, y in loader:
        loss = (model(x) - y).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        meter.update(loss)
    print(meter.total)
"""
METERS = """
try:
    from fast import Base
except ImportError:
    from base import Base

if True:
    class Meter(Base):
        pass
"""
BASE = """
import torch
from kept import keep as kept_value

class Base:
    def __init__(self):
        self.total = 0

    def update(self, value):
        self.total += kept_value(value)
"""
KEEPS, CUTS = "def keep(value):\n    return value\n", "def keep(value):\n    return value.item()\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose cache lies in it, and whose finding crosses four files."""
    monkeypatch.delenv(VARIABLE)
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "pyproject.toml").write_text("[tool.memlint]\n")
    for name, text in {"train": TRAIN, "meters": METERS, "base": BASE, "kept": KEEPS}.items():
        (folder / f"{name}.py").write_text(text)
    for number in range(20):  # (what is known of all files together is not kept for small projects)
        (folder / f"value{number}.py").write_text(f"value = {number}\n")
    monkeypatch.chdir(folder)
    return folder


def forget_results(project: Path) -> None:
    (project / FOLDER / "results.sqlite").unlink()


def test_findings_are_those_of_a_run_that_reads_everything(project: Path) -> None:
    cold, _ = run()
    assert [code for code, *_ in cold] == ["MEM101"]
    for line in ("one = 1\n", "two = 2\n"):
        with (project / "train.py").open("a") as file:
            file.write(line)
        assert run()[0] == cold == run("--no-cache")[0]


def test_a_change_in_another_file_is_seen(project: Path) -> None:
    assert run()[0]
    (project / "kept.py").write_text(CUTS)
    assert run()[0] == []
    (project / "kept.py").write_text(KEEPS)
    (project / "base.py").write_text(BASE.replace("import keep as kept_value", "import keep") + "kept_value = float\n")
    assert run()[0] == []


def test_a_name_that_is_bound_twice_is_no_import_alone(project: Path) -> None:
    assert run()[0]
    (project / "base.py").write_text(BASE + "\nkept_value = float\n")
    cold = run("--no-cache")[0]
    for line in ("", "one = 1\n"):
        with (project / "train.py").open("a") as file:
            file.write(line)
        assert run()[0] == cold


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: (folder / "meters.py").rename(folder / "renamed.py"),
        lambda folder: (folder / "copy.py").write_bytes((folder / "meters.py").read_bytes()),
        lambda folder: (folder / "other.py").write_text("from meters import Meter as Old\nMeter = Old\n"),
        lambda folder: (folder / "base.py").unlink(),
        lambda folder: (folder / "base.py").write_text("# Base was here\n"),
        lambda folder: (folder / "more.py").write_text("from base import *\nclass Meter(Base):\n    pass\n"),
        lambda folder: (folder / "value3.py").write_text("if __name__ == '__main__':\n    print('no training')\n"),
        lambda folder: (folder / "value3.py").write_text("import train\ntrain.train(*train.parse_args())\n"),
    ],
    ids=["renamed", "copied", "another name", "gone", "a comment alone", "a class more", "a program", "a caller"],
)
def test_files_that_come_and_go(project: Path, change: Callable[[Path], object]) -> None:
    assert run()[0]
    change(project)
    (project / "train.py").write_text(TRAIN + "\none = 1\n")
    found = run()[0]
    assert found == run("--no-cache")[0]
    forget_results(project)
    assert run()[0] == found


def test_a_file_that_is_saved_during_the_run(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its index, fetched before, does not fit its text, and nothing that was learned of it is kept."""
    renamed = "# more\n# lines\n" + KEEPS + "def alone(value):\n    return value\n"
    other = {f"value{number}": f"other = {number}\n" for number in range(20)}
    cold, _ = run()  # stores the indexes
    before = {name: (project / f"{name}.py").read_text() for name in other}
    for name, text in other.items():  # another branch, whose words replace the stored ones
        (project / f"{name}.py").write_text(text)
    (project / "kept.py").write_text(CUTS)
    run()
    for name, text in before.items():
        (project / f"{name}.py").write_text(text)
    (project / "kept.py").write_text(KEEPS)
    (project / "train.py").write_text(TRAIN + "\none = 1\n")
    inverted = Words._inverted

    def save_meanwhile(words: Words, *arguments: Any) -> object:
        found = inverted(words, *arguments)
        (project / "kept.py").write_text(renamed)
        return found

    monkeypatch.setattr(Words, "_inverted", save_meanwhile)
    result = lint(["train.py"], Options(cwd=project, cache=True)).result
    monkeypatch.undo()
    monkeypatch.chdir(project)
    assert [one.code for one in result.findings] == [code for code, *_ in cold]
    (project / "base.py").write_text(BASE.replace("import keep as", "import alone as"))
    assert run()[0] == run("--no-cache")[0] == cold


def test_what_cannot_be_read_is_said_by_each_run(project: Path) -> None:
    (project / "latin.py").write_bytes(b"import torch  # caf\xe9\n")
    for number in range(3):
        (project / "train.py").write_text(TRAIN + f"\nnumber = {number}\n")
        assert "latin.py was not read" in run("--verbose")[1]


def test_a_string_that_no_encoding_holds(project: Path) -> None:
    (project / "value3.py").write_text("if __name__ == '__main__':\n    print('asks who calls what')\n")
    (project / "loader.py").write_text('import importlib\nnet = importlib.import_module("nets\\ud800." + __name__)\n')
    assert run()[0] == run("--no-cache")[0] != []


@pytest.mark.parametrize("content", [b"this is no database", b"", b"SQLite format 3\0" + b"\xff" * 4000])
def test_broken_indexes_are_made_anew(project: Path, content: bytes) -> None:
    cold, _ = run()
    forget_results(project)
    (project / FOLDER / "indexes.sqlite").write_bytes(content)
    assert run()[0] == cold
    forget_results(project)
    found, said = run()
    assert found == cold
    assert "broken" not in said


@pytest.mark.parametrize("value", ["x'00'", "x'789c030000000001'"])
def test_an_index_that_cannot_be_read_is_read_from_the_file(project: Path, value: str) -> None:
    cold, _ = run()
    forget_results(project)
    with sqlite3.connect(project / FOLDER / "indexes.sqlite") as database:
        database.execute(f"UPDATE shelf SET value = {value}")
    database.close()
    assert run()[0] == cold
    forget_results(project)
    assert run()[0] == cold


def test_a_lock_that_another_process_holds(project: Path) -> None:
    cold, _ = run()
    forget_results(project)
    holder = sqlite3.connect(project / FOLDER / "indexes.sqlite", isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    found, said = run()
    holder.execute("ROLLBACK")
    holder.close()
    assert found == cold
    assert said.count("locked") == 1


def test_a_folder_that_can_only_be_read(project: Path) -> None:
    cold, _ = run()
    forget_results(project)
    (project / FOLDER / "indexes.sqlite").chmod(0o444)
    (project / "kept.py").write_text(KEEPS + "\n")
    assert run()[0] == cold


def test_what_was_not_used_for_the_longest_goes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shelving, "MAX_BYTES", 1_800)
    for day in range(8):
        monkeypatch.setattr(shelving.time, "time", lambda day=day: day * 90_000.0)
        shelf = Shelf(tmp_path)
        if day > 1:
            assert shelf.get(b"text 1") is not None  # used every day
        shelf.put(f"text {day}".encode(), os.urandom(10 if day == 1 else 600))
        shelf.close()
    reader = Shelf(tmp_path)
    assert [day for day in range(8) if reader.get(f"text {day}".encode()) is not None] == [1, 7]
