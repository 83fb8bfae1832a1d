"""A cache that is not ours is neither used nor touched; what is wrong in one of ours costs time and nothing else."""

from __future__ import annotations

import os
import shutil
import sqlite3
import zlib
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from memlint.cli import main
from memlint.engine.store import cache as caching
from memlint.engine.store import ownership
from memlint.engine.store.cache import Cache
from memlint.engine.store.database import FOLDER, VARIABLE
from memlint.engine.store.shelf import Shelf

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv(VARIABLE)
    root = tmp_path / "project"
    root.mkdir()
    (root / "pyproject.toml").touch()
    (root / "train.py").write_text("import torch\n")
    monkeypatch.chdir(root)
    cache = Cache(root, str)
    cache.put(b"key", "kept")
    shelf = Shelf(root)
    shelf.put(b"text", b"index")
    shelf.close()
    return root


def kept(root: Path) -> tuple[str | None, list[str]]:
    cache = Cache(root, str)
    return cache.get(b"key"), cache.remarks


def state(folder: Path) -> dict[str, object]:
    """What lies in a folder: names, what links lead to, and contents."""
    return {
        str(path.relative_to(folder)): path.readlink() if path.is_symlink() else path.is_file() and path.read_bytes()
        for path in sorted(folder.rglob("*"))
    }


def link_folder(root: Path) -> None:
    shutil.move(root / FOLDER, root.parent / "elsewhere")
    (root / FOLDER).symlink_to(root.parent / "elsewhere")


def link_file(root: Path) -> None:
    shutil.move(root / FOLDER / "results.sqlite", root.parent / "elsewhere.sqlite")
    (root / FOLDER / "results.sqlite").symlink_to(root.parent / "elsewhere.sqlite")


def dangling(root: Path) -> None:
    (root / FOLDER / "results.sqlite").unlink()
    (root / FOLDER / "results.sqlite").symlink_to(root.parent / "made.sqlite")


def second_name(root: Path) -> None:
    os.link(root / FOLDER / "results.sqlite", root.parent / "elsewhere.sqlite")


def pipe(root: Path) -> None:
    (root / FOLDER / "results.sqlite").unlink()
    os.mkfifo(root / FOLDER / "results.sqlite")


def journal_link(root: Path) -> None:
    (root / FOLDER / "results.sqlite-journal").symlink_to(root.parent / "journal")


def huge(root: Path) -> None:
    with (root / FOLDER / "results.sqlite").open("r+b") as file:
        file.truncate(ownership.MAX_FILE + 1)


def statements(*lines: str) -> Callable[[Path], None]:
    def change(root: Path) -> None:
        database = sqlite3.connect(root / FOLDER / "results.sqlite")
        for line in lines:
            database.execute(line)
        database.commit()
        database.close()

    return change


NOT_OURS = {
    "a linked folder": link_folder,
    "a linked file": link_file,
    "a link that leads nowhere": dangling,
    "a file of two names": second_name,
    "a linked journal": journal_link,
    "a pipe": pipe,
    "a huge file": huge,
    "a view": statements(
        "ALTER TABLE entries RENAME TO other", "CREATE VIEW entries AS SELECT key, used, size, value FROM other"
    ),
    "a trigger": statements("CREATE TRIGGER t AFTER UPDATE ON entries BEGIN DELETE FROM entries; END"),
    "another table": statements("CREATE TABLE more (a)"),
    "another column": statements("ALTER TABLE entries ADD COLUMN more"),
    "other tables": statements("DROP TABLE entries", "CREATE TABLE notes (text)", "INSERT INTO notes VALUES ('mine')"),
    "a table of the same name": statements("DROP TABLE entries", "CREATE TABLE entries (key, used, size, value)"),
}


@pytest.mark.parametrize("kind", NOT_OURS)
def test_what_is_not_ours_is_neither_used_nor_touched(kind: str, project: Path, capsys: Capture) -> None:
    NOT_OURS[kind](project)
    before = state(project.parent)
    found, remarks = kept(project)
    assert found is None
    assert "is neither used nor changed: " in remarks[0] and len(remarks) == 1
    cache = Cache(project, str)
    cache.put(b"key", "new")
    assert "is neither used nor changed: " in cache.remarks[0]
    assert state(project.parent) == before
    assert main(["clean"]) == 0
    if kind not in (
        "a view",
        "a trigger",
        "another table",
        "another column",
        "other tables",
        "a table of the same name",
    ):
        assert "was left: " in capsys.readouterr().out
        after = state(project.parent)
        assert {name: what for name, what in before.items() if "elsewhere" in name or "made" in name}.items() <= (
            after.items()
        )
        assert (project / FOLDER).is_symlink() or os.path.lexists(project / FOLDER / "results.sqlite")


def test_a_folder_of_another_user(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    before = state(project)
    assert kept(project)[0] is None
    assert "belongs to another user" in kept(project)[1][0]
    assert state(project) == before


def test_a_run_says_so(project: Path, capsys: Capture) -> None:
    (project / "train.py").write_text("import torch\nmodel = torch.nn.Linear(1, 1)\n")
    link_folder(project)
    assert main(["train.py", "--verbose"]) == 0
    assert "no cache: " in capsys.readouterr().err
    assert main(["train.py"]) == 0
    assert capsys.readouterr().err == ""


ROWS = {
    "a bomb": ("value = ?", zlib.compress(b"\0" * (caching.MAX_ENTRY + 10), 9)),
    "a bomb of a bomb": ("value = ?", zlib.compress(zlib.compress(b"\0" * 10_000_000))),
    "text for a value": ("value = ?", "kept"),
    "a number for a value": ("value = ?", 5),
    "no value": ("value = ?", None),
    "what follows": ("value = ?", zlib.compress(msgspec.msgpack.encode("kept")) + b"more"),
    "half a value": ("value = ?", zlib.compress(msgspec.msgpack.encode("kept" * 1000))[:20]),
    "a deep value": ("value = ?", zlib.compress(b"\x91" * 1_000_000)),
    "another type": ("value = ?", zlib.compress(msgspec.msgpack.encode({"a": 1}))),
    "a blob of zeros": ("value = zeroblob(?)", 100_000_000),
}


@pytest.mark.parametrize("kind", ROWS)
def test_a_row_that_is_wrong_is_no_entry(kind: str, project: Path) -> None:
    what, value = ROWS[kind]
    database = sqlite3.connect(project / FOLDER / "results.sqlite")
    database.execute(f"UPDATE entries SET {what}", (value,))
    database.commit()
    database.close()
    assert kept(project)[0] is None
    Cache(project, str).put(b"key", "new")
    assert kept(project) == ("new", [])


@pytest.mark.parametrize("used", ["x", b"x", 1.5, None, 1 << 62])
def test_times_and_sizes_of_any_type(used: object, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caching, "MAX_ENTRIES", 3)
    for file, table in (("results", "entries"), ("indexes", "shelf")):
        database = sqlite3.connect(project / FOLDER / f"{file}.sqlite")
        database.execute(f"UPDATE {table} SET used = ?, size = -1e300", (used,))
        database.execute(f"INSERT INTO {table} VALUES (CAST(x'ff' AS TEXT), ?, -5, 'text')", (used,))
        database.commit()
        database.close()
    shelf = Shelf(project)
    assert shelf.get(b"text") in (None, b"index")
    shelf.put(b"other", b"more")
    shelf.close()
    assert shelf.remarks == []
    cache = Cache(project, str)
    for name in "abcd":
        cache.put(name.encode(), name)
    assert cache.remarks == []
    database = sqlite3.connect(project / FOLDER / "results.sqlite")
    assert database.execute("SELECT count(*) FROM entries").fetchone() == (3,)
    database.close()


def test_a_journal_that_nobody_writes_is_not_obeyed(project: Path) -> None:
    """It may name a file that SQLite would delete. The cache that it lies beside is made anew."""
    journal = project / FOLDER / "results.sqlite-journal"
    journal.write_bytes(b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7" + b"\0" * 600)
    assert kept(project) == (None, [])
    assert not journal.exists()
    Cache(project, str).put(b"key", "new")
    assert kept(project) == ("new", [])


def test_a_journal_that_is_being_written_is_waited_for(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memlint.engine.store.database._PATIENCE", 0.1)
    import subprocess
    import sys

    script = (
        "import sqlite3, sys\n"
        f"database = sqlite3.connect({str(project / FOLDER / 'results.sqlite')!r}, isolation_level=None)\n"
        "database.execute('BEGIN IMMEDIATE')\n"
        "database.execute('UPDATE entries SET used = 1')\n"
        "print('ready', flush=True)\n"
        "sys.stdin.readline()\n"
        "database.execute('COMMIT')\n"
    )
    writer = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert writer.stdout is not None
    writer.stdout.readline()
    assert (project / FOLDER / "results.sqlite-journal").exists()
    found, remarks = kept(project)
    assert found is None and "another run is writing it" in remarks[0]
    writer.communicate("\n")
    assert kept(project) == ("kept", [])


def test_clean_follows_no_link(project: Path, capsys: Capture) -> None:
    """Neither in the place of a database nor of the files that say what the folder is."""
    outside = project.parent / "outside"
    outside.mkdir()
    for name in ("CACHEDIR.TAG", ".gitignore", "indexes.sqlite"):
        shutil.copy(project / FOLDER / name, outside / name)
        (project / FOLDER / name).unlink()
        (project / FOLDER / name).symlink_to(outside / name)
    before = state(outside)
    assert main(["clean"]) == 0
    assert state(outside) == before
    assert {path.name for path in (project / FOLDER).iterdir()} >= {"CACHEDIR.TAG", ".gitignore", "indexes.sqlite"}


def test_clean_leaves_what_somebody_else_wrote(project: Path) -> None:
    (project / FOLDER / ".gitignore").write_text("mine\n")
    (project / FOLDER / "notes.txt").write_text("mine\n")
    assert main(["clean"]) == 0
    assert {path.name for path in (project / FOLDER).iterdir()} == {".gitignore", "notes.txt"}
