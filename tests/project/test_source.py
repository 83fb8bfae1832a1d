from __future__ import annotations

import os
from pathlib import Path

import pytest

from memlint.project import Sources


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("x = 1  # plain", str),
        ("x = 1  # café", str),
        ("x = 1  # → an arrow", bytes),
        ("x = '\U0001f525'\r\ny = 2", bytes),
        ("", str),
    ],
)
def test_a_text_is_kept_in_the_room_that_it_takes(tmp_path: Path, text: str, kept: type) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(text.encode())
    source = Sources({"a.py": path}, frozenset({"a.py"}))["a.py"]
    assert source.text == text
    assert type(source.packed) is kept


def sources_of(folder: Path, **contents: str) -> Sources:
    for name, text in contents.items():
        (folder / f"{name}.py").write_text(text)
    return Sources({name: folder / f"{name}.py" for name in contents}, frozenset())


def test_a_digest_tells_contents_apart(tmp_path: Path) -> None:
    sources = sources_of(tmp_path, one="x = 1", same="x = 1", other="x = 2")
    assert sources.digest("one") == sources.digest("same") != sources.digest("other")
    path = tmp_path / "one.ipynb"
    path.write_text("x = 1")
    assert Sources({"a": path}, frozenset()).digest("a") != sources.digest("one")  # its text would be another one


def test_a_digest_is_that_of_the_text_that_was_read(tmp_path: Path) -> None:
    sources = sources_of(tmp_path, one="x = 1", other="x = 2")
    before = sources.digest("one")
    (tmp_path / "one.py").write_text("x = 2")
    assert sources.digest("one") == before
    assert sources["one"].text == "x = 2"
    assert sources.digest("one") == sources.digest("other") != before


@pytest.mark.parametrize("age", [0, 3600], ids=["just written", "old"])
def test_a_change_on_the_disk_is_seen(tmp_path: Path, age: int) -> None:
    sources = sources_of(tmp_path, one="x = 1", gone="y = 1", other="x = 2")
    times = [(tmp_path / "one.py").stat().st_mtime_ns - age * 10**9] * 2
    for name in ("one", "gone"):
        os.utime(tmp_path / f"{name}.py", ns=(times[0], times[1]))
    first = sources.digest("one")
    assert sources.digest("gone") == sources.digest_now("gone") != b""
    assert sources.digest_now("one") == first
    (tmp_path / "one.py").write_text("x = 2")
    if not age:  # within one tick of the clock
        os.utime(tmp_path / "one.py", ns=(times[0], times[1]))
    (tmp_path / "gone.py").unlink()
    assert sources.digest_now("one") == sources.digest("other") != first
    assert sources.digest_now("gone") == b""
