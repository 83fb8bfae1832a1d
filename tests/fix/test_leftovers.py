"""What a killed run leaves beside the files is removed by the next one, and nothing else is."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from toy_process import memlint

from memlint.cli import main
from memlint.fix import files
from memlint.fix.files import Change, WriteError, write
from memlint.temporary import NAME, Temporary, sweep

Toy = Callable[..., Path]
SAFE, FIXED = 'mend("safe", "fixed = 1")\n', "fixed = 1\n"
posix = pytest.mark.skipif(os.name == "nt", reason="files are not locked there")


@posix
@pytest.mark.parametrize("under_git", [True, False])
@pytest.mark.parametrize("words", [["."], [".", "--fix"], ["sub/a.py", "--fix"], ["ignored/b.py", "--fix"]])
def test_the_next_run_removes_what_was_left(words: list[str], under_git: bool, toy: Toy) -> None:
    root = toy({"sub/a.py": SAFE, "ignored/b.py": SAFE, ".gitignore": "ignored/\n"})
    if under_git:
        subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    place = root / ("ignored" if "ignored/b.py" in words else "sub")
    left = [place / ".memlint-0123456789ab.new", place / ".memlint-0123456789ab.old"]
    for path in left:
        path.write_text("half a fi")
    main(words)
    assert not any(path.exists() for path in left)


@posix
def test_what_is_not_left_by_a_killed_run_stays(toy: Toy, tmp_path: Path) -> None:
    alike = (
        ".memlint-0123456789.new", ".memlint-0123456789AB.new", "x.memlint-0123456789ab.new",
        ".memlint-0123456789ab.newer", ".memlint-0123456789ab",
    )  # fmt: skip
    root = toy({"a.py": SAFE, **dict.fromkeys(alike, "")})
    outside = tmp_path / "outside"
    outside.write_text("mine")
    (root / ".memlint-00000000000a.new").symlink_to(outside)
    (root / ".memlint-00000000000b.new").mkdir()
    os.mkfifo(root / ".memlint-00000000000c.new")
    held = Temporary(root / "a.py")
    before = {path.name for path in root.iterdir()}
    main([".", "--fix"])
    assert {path.name for path in root.iterdir()} == before
    assert outside.read_text() == "mine"
    held.close()
    assert sweep([held.path]) == [held.path]


def test_a_run_that_writes_nothing_removes_nothing(toy: Toy) -> None:
    import memlint

    root = toy({"a.py": SAFE, ".memlint-0123456789ab.new": "half"})
    main([".", "--diff", "--no-cache"])
    memlint.lint(["."])
    assert (root / ".memlint-0123456789ab.new").exists()


def test_a_backup_that_is_to_stay_is_no_leftover(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a file could not be put back, the message names what it held."""
    changes = []
    for name in "ab":
        (tmp_path / f"{name}.py").write_text(name)
        changes.append(Change(tmp_path / f"{name}.py", f"{name}.py", name.encode(), b"new"))
    real, calls = Path.replace, []

    def fails(self: Path, target: Path) -> Path:
        calls.append(self.suffix)
        if len(calls) in (2, 3):
            raise OSError(5, "no")
        return real(self, target)

    monkeypatch.setattr(files.Path, "replace", fails)
    with pytest.raises(WriteError, match="what it held before is in") as error:
        write(changes)
    kept = Path(str(error.value).rpartition(" is in ")[2])
    assert kept.read_text() == "a" and not NAME.fullmatch(kept.name)
    assert not [path for path in tmp_path.iterdir() if NAME.fullmatch(path.name)]


#: kills the process before or after the call of a function of `os` with a number
_KILL = """
import os, signal
calls = []
def deadly(name):
    real = getattr(os, name)
    def call(*arguments, **more):
        calls.append(name)
        if len(calls) == {number}:
            os.kill(os.getpid(), signal.SIGKILL)
        result = real(*arguments, **more)
        if len(calls) == {number} + 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return result
    setattr(os, name, call)
import memlint.fix.files, memlint.engine.fixing.fixing
write = memlint.engine.fixing.fixing.write
def begin(changes):
    for name in ("open", "fsync", "replace", "rename", "unlink", "chmod", "close"):
        deadly(name)
    write(changes)
memlint.engine.fixing.fixing.write = begin
"""


@pytest.mark.slow  # a hundred runs are killed
@posix
def test_no_kill_tears_a_file(toy: Toy) -> None:
    """Each file holds what it held or what it was to hold, at each moment, and the next run leaves nothing behind."""
    names = [f"{letter}.py" for letter in "abcdefgh"]
    root = toy(dict.fromkeys(names, SAFE))
    kills, number, stages = 0, 1, set()
    while kills < 100:
        for name in names:
            (root / name).write_text(SAFE)
        done = memlint(root, ".", "--fix", "--no-cache", first=_KILL.format(number=number))
        number = 1 if done.returncode != -signal.SIGKILL else number + 1
        kills += done.returncode == -signal.SIGKILL
        texts = [(root / name).read_text() for name in names]
        assert set(texts) <= {SAFE, FIXED}
        stages.add(tuple(texts))
        done = memlint(root, ".", "--fix", "--no-cache")
        assert done.returncode == 0, done.stderr
        assert [(root / name).read_text() for name in names] == [FIXED] * len(names)
        assert not [path for path in root.rglob("*") if ".memlint" in path.name]
    assert len(stages) > len(names) / 2, "it was killed at several stages"


_WRITER = """
import os, sys
from pathlib import Path
from memlint.engine.store.cache import Cache
from memlint.engine.store.shelf import Shelf
root = Path(sys.argv[1])
cache = Cache(root, list[str])
print("ready", flush=True)
number = 0
while True:
    number += 1
    cache.put(b"%d" % (number % 40), [str(number % 40)] * 20_000)
    shelf = Shelf(root)
    shelf.put(str(number), os.urandom(50_000))
    shelf.close()
"""


@pytest.mark.slow  # a hundred writers are killed
@posix
def test_no_kill_breaks_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import random
    import time

    from memlint.engine.store.cache import Cache
    from memlint.engine.store.database import FOLDER, VARIABLE
    from memlint.engine.store.shelf import Shelf

    monkeypatch.delenv(VARIABLE)
    monkeypatch.setenv("MEMLINT_CACHE_DIR", "")
    chance = random.Random(39)
    for _ in range(100):
        writer = subprocess.Popen([sys.executable, "-c", _WRITER, str(tmp_path)], stdout=subprocess.PIPE)
        assert writer.stdout is not None
        writer.stdout.readline()
        time.sleep(chance.random() / 5)
        writer.kill()
        writer.communicate()
        cache, shelf = Cache(tmp_path, list[str]), Shelf(tmp_path)
        for number in range(40):
            found = cache.get(b"%d" % number)
            assert found is None or found == [str(number)] * 20_000
        assert shelf.get("1") is None or len(shelf.get("1") or b"") == 50_000
        cache.put(b"last", ["mine"])
        assert cache.get(b"last") == ["mine"]
        shelf.put("last", b"mine")
        shelf.close()
        assert cache.remarks == shelf.remarks == []
        names = {path.name for path in (tmp_path / FOLDER).iterdir()}
        assert names <= {"CACHEDIR.TAG", ".gitignore", "results.sqlite", "indexes.sqlite"}
