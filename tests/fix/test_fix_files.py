"""Bytes: what is written is what was there, but for the edits, and all of it or nothing."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memlint.fix.diff import unified
from memlint.fix.files import Change, WriteError, encode, obstacle, write
from memlint.fix.spans import EditError
from memlint.project import decode

NO_END = b"\\ No newline at end of file\n"
HEADS = {
    "utf-8": "",
    "utf-8-sig": "\ufeff",
    "latin-1": "# -*- coding: latin-1 -*-\n",
    "cp1252": "#!/usr/bin/env python\n# coding=cp1252\n",
    "euc-jp": "# vim: set fileencoding=euc-jp :\n",
    "future-fstrings": "# -*- coding: future_fstrings -*-\n",  # of a package, that need not be there
}


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(sorted(HEADS)), st.text(), st.text(), st.sampled_from(["\n", "\r\n", "\r"]))
def test_text_goes_back_into_its_encoding(encoding: str, body: str, more: str, newline: str) -> None:
    codec = "utf-8" if encoding == "future-fstrings" else encoding.removesuffix("-sig")
    body, more = (text.encode(codec, "ignore").decode(codec, "ignore") for text in (body, more))
    before = HEADS[encoding].replace("\n", newline if newline != "\r" else "\n").encode(codec) + body.encode(codec)
    try:
        text = decode(before)
        after = encode(before, text + more)
    except (EditError, SyntaxError, UnicodeError):
        return  # a body that declares something else, or that this codec does not write back
    assert encode(before, text) == before
    assert after == before + more.encode(codec)


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (b"# coding: latin-1\n", "# coding: latin-1\n\u2192\n", "iso-8859-1 has no '→'"),
        (
            "# coding: latin-1\né\n".encode("latin-1"),
            "import torch\n\n# coding: latin-1\né\n",
            "would no longer be read",
        ),
        ("# coding: latin-1\né\n".encode("latin-1"), "import torch\n# coding: latin-1\né\n", "would no longer be read"),
        (b"x\n", "\ud800\n", "utf-8 has no"),
        (b"x\n", "# coding: klingon\n", "would no longer be read"),
        (b"\xff\n", "x\n", "has changed since it was read"),
        (b"# coding: klingon\n", "x\n", "has changed since it was read"),
    ],
)
def test_what_would_be_read_otherwise_is_not_written(before: bytes, after: str, said: str) -> None:
    with pytest.raises(EditError, match=said):
        encode(before, after)


def change(path: Path, before: bytes = b"old\r\n", after: bytes = b"new\n") -> Change:
    return Change(path, path.name, before, after)


@pytest.fixture
def old(tmp_path: Path) -> Callable[[str], Path]:
    def make(name: str) -> Path:
        (tmp_path / name).write_bytes(b"old\r\n")
        return tmp_path / name

    return make


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("mode", [0o644, 0o755, 0o600, 0o664])
def test_mode_and_owner_stay(old: Callable[[str], Path], mode: int) -> None:
    path = old("a.py")
    path.chmod(mode)
    owner = (12345, 23456) if os.geteuid() == 0 else (os.getuid(), os.getgid())
    os.chown(path, *owner)
    write([change(path)])
    status = path.stat()
    assert (path.read_bytes(), stat.S_IMODE(status.st_mode)) == (b"new\n", mode)
    assert (status.st_uid, status.st_gid) == owner
    assert names(path.parent) == ["a.py"]


def test_links_stay_links(old: Callable[[str], Path], tmp_path: Path) -> None:
    path = old("a.py")
    (tmp_path / "first").symlink_to("a.py")
    (tmp_path / "second").symlink_to("first")
    write([change(tmp_path / "second")])
    assert path.read_bytes() == b"new\n"
    assert (tmp_path / "second").is_symlink() and (tmp_path / "first").is_symlink()


def test_one_file_by_two_names_is_written_once(old: Callable[[str], Path], tmp_path: Path) -> None:
    path = old("a.py")
    (tmp_path / "b.py").symlink_to("a.py")
    write([change(path)])
    write([change(tmp_path / "b.py")])
    assert path.read_bytes() == b"new\n"


def test_a_changed_or_vanished_file_is_left_alone(old: Callable[[str], Path]) -> None:
    path, other = old("a.py"), old("b.py")
    path.write_bytes(b"changed")
    with pytest.raises(WriteError, match=r"a\.py: it has changed since it was read"):
        write([change(other), change(path)])
    assert (path.read_bytes(), other.read_bytes()) == (b"changed", b"old\r\n")
    path.unlink()
    with pytest.raises(WriteError, match=r"a\.py: no such file"):
        write([change(path)])
    assert names(path.parent) == ["b.py"]


STEPS = ["os.open", "os.fsync", "os.chown", "pathlib.Path.chmod", "pathlib.Path.replace"]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(errno.ENOSPC, "No space left on device")])
@pytest.mark.parametrize("nth", [1, 2, 3, 4])
@pytest.mark.parametrize("step", STEPS)
def test_whatever_fails_files_that_belong_together_hold_what_they_held(
    old: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch, step: str, nth: int, error: BaseException
) -> None:
    first, second = old("a.py"), old("b.py")
    owner, name = (os, step[3:]) if step.startswith("os.") else (Path, step.rpartition(".")[2])
    real, calls = getattr(owner, name), []

    def failing(*arguments: object, **options: object) -> object:
        calls.append(name)
        if len(calls) == nth:
            raise error
        return real(*arguments, **options)

    with monkeypatch.context() as patched:
        patched.setattr(owner, name, failing)
        try:
            write([change(first), change(second)])
        except (WriteError, KeyboardInterrupt) as raised:
            expected = b"old\r\n"
            if isinstance(error, OSError):
                assert isinstance(raised, WriteError) and "no space left on device" in raised.reason
        else:
            expected = b"new\n"
    assert (first.read_bytes(), second.read_bytes()) == (expected, expected)
    assert names(first.parent) == ["a.py", "b.py"]


def test_an_interrupt_after_the_first_of_two_was_replaced_puts_it_back(
    old: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = old("a.py"), old("b.py")
    real = Path.replace

    def interrupted(self: Path, target: Path) -> Path:
        if target == second:
            raise KeyboardInterrupt
        return real(self, target)

    monkeypatch.setattr(Path, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write([change(first), change(second)])
    assert (first.read_bytes(), second.read_bytes()) == (b"old\r\n", b"old\r\n")
    assert names(first.parent) == ["a.py", "b.py"]


def test_obstacles(old: Callable[[str], Path], tmp_path: Path) -> None:
    path = old("a.py")
    assert obstacle(path, tmp_path) is None
    path.chmod(0o444)
    assert obstacle(path, tmp_path) == "the file is read-only"
    path.chmod(0o644)
    tmp_path.chmod(0o555)
    assert obstacle(path, tmp_path) == f"its folder {tmp_path} is read-only"
    tmp_path.chmod(0o755)
    assert obstacle(tmp_path, tmp_path) == "it is no regular file"
    assert obstacle(tmp_path / "no.py", tmp_path) == "no such file or directory"
    (tmp_path / "loop").symlink_to("loop")
    assert obstacle(tmp_path / "loop", tmp_path) is not None


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (b"a\nb", b"a\nc", b"@@ -1,2 +1,2 @@\n a\n-b\n" + NO_END + b"+c\n" + NO_END),
        (b"a\r\nb\r\n", b"a\r\n", b"@@ -1,2 +1 @@\n a\r\n-b\r\n"),
        (b"a\rb\n", b"a\rc\n", b"@@ -1 +1 @@\n-a\rb\n+a\rc\n"),
        (b"\xe9\n", b"\xe9\xe9\n", b"@@ -1 +1 @@\n-\xe9\n+\xe9\xe9\n"),
        (b"", b"a\n", b"@@ -0,0 +1 @@\n+a\n"),
        (b"a\n", b"a\n", b""),
    ],
)  # fmt: skip
def test_diffs_are_in_the_bytes_of_the_file(before: bytes, after: bytes, expected: bytes) -> None:
    head = b"--- x\n+++ x\n" if expected else b""
    assert unified(Change(Path("x"), "x", before, after)) == head + expected
