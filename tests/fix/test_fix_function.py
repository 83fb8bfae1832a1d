"""`memlint.apply_fixes`: what --fix and --diff do, as a function."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import memlint
from memlint.config import ConfigError

Toy = Callable[..., Path]

SAFE = 'mend("safe", "fixed = 1")\n'
UNSAFE = 'mend("unsafe", "fixed = 2")\n'
BAD = 'bare = print\nmend("safe", "bare()")\n'


def test_it_mends_and_gives_what_remains(toy: Toy) -> None:
    root = toy({"a.py": SAFE + UNSAFE, "b.py": BAD, "c.py": "x = 1\n"})
    done = memlint.apply_fixes(".")
    assert isinstance(done, memlint.FixResult)
    assert (root / "a.py").read_text() == f"fixed = 1\n{UNSAFE}"
    assert (root / "b.py").read_text() == BAD
    assert [(one.path, one.line, one.code) for one in done.fixed] == [("a.py", 1, "MEM911")]
    assert [(one.path, one.line) for one in done.result.findings] == [("a.py", 2), ("b.py", 2)]
    assert [(one.finding.path, one.reason) for one in done.refused] == [("b.py", "the finding would still be there")]
    assert (done.changed, done.result.fixed) == (("a.py",), 1)


def test_without_writing_it_gives_the_diff_that_patch_applies(toy: Toy) -> None:
    files = {"a.py": f"# é\r\n{SAFE.rstrip()}\r\n", "b.py": SAFE.rstrip()}
    root = toy(files)
    shown = memlint.apply_fixes(["a.py", Path("b.py")], write=False)
    assert {name: (root / name).read_bytes().decode() for name in files} == files
    assert (shown.changed, shown.result.findings, shown.result.fixed) == (("a.py", "b.py"), (), 2)
    subprocess.run(["patch", "-p0", "--binary"], input=shown.diff, cwd=root, check=True)
    assert (root / "a.py").read_bytes() == "# é\r\nfixed = 1\r\n".encode()
    assert memlint.apply_fixes(["a.py", "b.py"]).diff == b"", "there is nothing left to do"


@pytest.mark.parametrize(
    ("config", "unsafe", "made"),
    [("", None, False), ("", True, True), ("unsafe-fixes = true", None, True), ("unsafe-fixes = true", False, False)],
)
def test_unsafe_fixes_are_asked_for(toy: Toy, config: str, unsafe: bool | None, made: bool) -> None:
    root = toy({"a.py": UNSAFE}, config)
    memlint.apply_fixes("a.py", unsafe=unsafe)
    assert (root / "a.py").read_text() == ("fixed = 2\n" if made else UNSAFE)


def test_it_takes_the_options_of_lint(toy: Toy) -> None:
    root = toy({"a.py": f"{SAFE}tail()\n", "b.py": SAFE})
    assert [one.code for one in memlint.apply_fixes(".", select="MEM912", exclude="b.py").fixed] == ["MEM912"]
    assert (root / "a.py").read_text() == f"{SAFE}tail().done()\n"
    assert (root / "b.py").read_text() == SAFE


def test_what_cannot_be_written_is_a_failure(toy: Toy) -> None:
    root = toy({"a.py": SAFE, "b.py": SAFE})
    (root / "a.py").chmod(0o444)
    done = memlint.apply_fixes(".")
    assert [(one.path, one.reason) for one in done.result.failures] == [("a.py", "not fixed: the file is read-only")]
    assert ((root / "a.py").read_text(), done.changed) == (SAFE, ("b.py",))


def test_mistakes_raise_before_anything_is_written(toy: Toy) -> None:
    root = toy({"a.py": SAFE})
    for paths, options, said in (
        ("-", {}, "not standard input"),
        ("a.py", {"select": "MEM9O1"}, "unknown rule"),
        ("a.py", {"config": "pyproject.toml", "isolated": True}, "exclude each other"),
    ):
        with pytest.raises(ConfigError, match=said):
            memlint.apply_fixes(paths, **options)
    assert (root / "a.py").read_text() == SAFE


def test_an_interrupt_names_the_files(toy: Toy, monkeypatch: pytest.MonkeyPatch) -> None:
    toy({"a.py": SAFE, "b.py": SAFE})
    real, calls = os.fsync, []

    def interrupted(handle: int) -> None:
        calls.append(handle)
        if len(calls) == 2:
            raise KeyboardInterrupt
        real(handle)

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt) as stop:
        memlint.apply_fixes(".")
    assert (stop.value.written, stop.value.unwritten) == (("a.py",), ("b.py",))  # type: ignore[attr-defined]
