"""The cache of results: the same findings, warm and cold, whatever happens to it."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from cached_runs import run

import memlint
from memlint.engine.store import cache as caching
from memlint.engine.store import database
from memlint.engine.store.cache import Cache
from memlint.engine.store.database import FOLDER, VARIABLE

TRAIN = """
import torch
from scores import score


def train(model, loader, optimizer):
    total = 0
    for x, y in loader:
        loss = (model(x) - y).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += score(loss)
    print(total)
"""
KEEPS, CUTS = "def score(loss):\n    return loss\n", "def score(loss):\n    return loss.item()\n"
HIT = "nothing has changed"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose cache lies in it, and whose finding depends on a file that is not linted."""
    monkeypatch.delenv(VARIABLE)
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "pyproject.toml").write_text("[tool.memlint]\n")
    (folder / "train.py").write_text(TRAIN)
    (folder / "scores.py").write_text(KEEPS)
    monkeypatch.chdir(folder)
    return folder


def test_a_second_run_takes_what_the_first_one_found(project: Path) -> None:
    cold, said = run()
    assert [code for code, *_ in cold] == ["MEM101"]
    assert HIT not in said
    warm, said = run()
    assert warm == cold
    assert HIT in said
    assert (project / FOLDER / "CACHEDIR.TAG").read_text().startswith("Signature: 8a477f597d28d172789f06886806bc55")
    assert (project / FOLDER / ".gitignore").read_text().endswith("*\n")


def test_no_cache_neither_takes_nor_keeps(project: Path) -> None:
    run("--no-cache")
    assert not (project / FOLDER).exists()
    run()
    assert HIT not in run("--no-cache")[1]


def test_the_api_keeps_nothing(project: Path) -> None:
    memlint.lint(["train.py"])
    assert not (project / FOLDER).exists()


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("run.ipynb", '{"cells": [{"cell_type": "code", "source": "from train import train\\ntrain(1, 2, 3)"}]}'),
        ("README.md", "pip install scoring\n"),
        ("mkdocs.yml", ""),
    ],
)
def test_who_may_use_the_code_is_looked_at_again(project: Path, file: str, text: str) -> None:
    (project / "pyproject.toml").write_text("[tool.memlint]\n[project]\nname = 'scoring'\n")
    (project / "__init__.py").touch()
    (project / "main.py").write_text("if __name__ == '__main__':\n    print(1)\n")
    reaches = []
    for _ in range(2):
        command = [sys.executable, "-m", "memlint", "train.py", "--output-format", "json"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        reaches += [one["reach"] for one in json.loads(done.stdout)["findings"]]
        (project / file).write_text(text)
    assert reaches == ["unused", "used"]


def test_a_change_in_a_file_that_is_not_linted_is_seen(project: Path) -> None:
    assert run()[0]
    (project / "scores.py").write_text(CUTS)
    found, said = run()
    assert found == []
    assert HIT not in said
    (project / "scores.py").write_text(KEEPS)
    assert HIT in run()[1]


@pytest.mark.parametrize("arguments", [("--ignore", "MEM101"), ("--min-confidence", "high"), ("--no-screen",)])
def test_other_options_are_another_run(project: Path, arguments: tuple[str, ...]) -> None:
    run()
    found, said = run(*arguments)
    assert HIT not in said
    assert (found == []) is ("--ignore" in arguments)


def test_another_configuration_is_another_run(project: Path) -> None:
    run()
    (project / "pyproject.toml").write_text('[tool.memlint]\nignore = ["MEM101"]\n')
    assert run()[0] == []


def test_a_rule_of_the_user_that_changes_is_seen(project: Path) -> None:
    room = project / "own" / "mem900_nothing"
    room.mkdir(parents=True)
    rule = (
        "from memlint.sdk import Meta\n\n"
        'META = Meta(code="MEM900", name="nothing", summary="{}", severity="note")\n\n\n'
        "def check(facts):\n    return iter(())\n"
    )
    (room / "rule.py").write_text(rule.format("Nothing."))
    (project / "pyproject.toml").write_text('[tool.memlint]\nrule-paths = ["own"]\n')
    run()
    assert HIT in run()[1]
    (room / "rule.py").write_text(rule.format("Nothing at all."))
    assert HIT not in run()[1]


@pytest.mark.parametrize("content", [b"this is no database", b"", b"SQLite format 3\0" + b"\xff" * 4000])
def test_a_broken_cache_is_made_anew(project: Path, content: bytes) -> None:
    cold, _ = run()
    (project / FOLDER / "results.sqlite").write_bytes(content)
    assert run()[0] == cold
    assert HIT in run()[1]


def test_a_broken_entry_is_made_anew(project: Path) -> None:
    cold, _ = run()
    with sqlite3.connect(project / FOLDER / "results.sqlite") as database:
        database.execute("UPDATE entries SET value = x'00'")
    database.close()
    found, said = run()
    assert found == cold
    assert "broken" in said
    assert HIT in run()[1]


def test_a_folder_that_cannot_be_made_costs_nothing_but_time(project: Path) -> None:
    (project / FOLDER).write_text("somebody's file")
    found, said = run()
    assert [code for code, *_ in found] == ["MEM101"]
    assert "no cache" in said
    assert (project / FOLDER).read_text() == "somebody's file"


def test_a_lock_that_another_process_holds(project: Path) -> None:
    cold, _ = run()
    holder = sqlite3.connect(project / FOLDER / "results.sqlite", isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    found, said = run()
    holder.execute("ROLLBACK")
    holder.close()
    assert found == cold
    assert "locked" in said
    assert HIT in run()[1]


def test_runs_beside_each_other(project: Path) -> None:
    command = [sys.executable, "-m", "memlint", "train.py", "--output-format", "concise"]
    runs = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    said = {one.communicate()[0].split(":")[1] for one in runs}
    assert said == {"13"}
    assert HIT in run()[1]


def test_a_run_beside_this_one_makes_each_file_first(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make = database._create

    def be_late(file: Path, text: str) -> None:
        file.write_text(text)
        make(file, text)

    monkeypatch.setattr(database, "_create", be_late)
    cache = Cache(project, int)
    cache.put(b"key", 3)
    assert (cache.get(b"key"), cache.remarks) == (3, [])


def test_a_file_that_cannot_be_read_is_tried_again(project: Path) -> None:
    (project / "broken.py").write_bytes(b"x = '\xff'\n")
    command = [sys.executable, "-m", "memlint", "broken.py", "train.py", "--verbose"]
    for _ in range(2):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert HIT not in done.stderr


def test_one_folder_for_all_projects(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "shared"))
    run()
    assert HIT in run()[1]
    assert not (project / FOLDER).exists()
    assert len(list((tmp_path / "shared").iterdir())) == 1


def test_clean_removes_what_is_ours_alone(project: Path) -> None:
    def clean(*paths: str) -> tuple[int, str]:
        command = [sys.executable, "-m", "memlint", "clean", *paths]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    run()
    (project / FOLDER / "notes.txt").write_text("mine")
    assert clean() == (0, f"removed {project / FOLDER}\n")
    assert [path.name for path in (project / FOLDER).iterdir()] == ["notes.txt"]
    assert clean("train.py")[1].startswith("there is no cache")
    (project / FOLDER / "notes.txt").unlink()
    run()
    clean()
    assert not (project / FOLDER).exists()
    assert clean("nowhere")[0] == 2


def test_the_least_recently_used_entries_go_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caching, "MAX_ENTRIES", 3)
    cache = Cache(tmp_path, str)
    for name in "abc":
        cache.put(name.encode(), name)
    assert cache.get(b"a") == "a"
    cache.put(b"d", "d")
    assert [cache.get(name.encode()) for name in "abcd"] == ["a", None, "c", "d"]


def test_the_cache_is_bounded_in_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caching, "MAX_BYTES", 40_000)
    cache = Cache(tmp_path, bytes)
    for number in range(12):
        cache.put(bytes([number]), os.urandom(8_000))
    assert [number for number in range(12) if cache.get(bytes([number]))] == [8, 9, 10, 11]
    cache.put(b"huge", os.urandom(20_000))
    assert cache.get(b"huge") is None
    assert cache.get(b"\x0b") is not None


def test_a_key_is_the_same_in_every_process() -> None:
    code = (
        "from memlint.engine.store.cache import Key; from pathlib import Path; key = Key();"
        "key.add((frozenset('abcdefgh'), {'x': 1, 'y': 2}, Path('a'), None)); print(key.digest().hex())"
    )
    keys = {
        subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(keys) == 1


def test_an_entry_of_another_kind_is_no_entry(tmp_path: Path) -> None:
    Cache(tmp_path, int).put(b"k", 1)
    reader = Cache(tmp_path, str)
    assert reader.get(b"k") is None
    assert "corrupt" in reader.remarks[0]
