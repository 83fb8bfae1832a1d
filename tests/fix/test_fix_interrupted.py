"""Ctrl-C while fixes are made: each file is whole, and the run says which are fixed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from toy_process import memlint

from memlint.cli import main

Toy = Callable[..., Path]
Capture = pytest.CaptureFixture[str]

SAFE = 'mend("safe", "fixed = 1")\n'


def test_an_interrupt_leaves_the_file_in_hand_as_it_was(
    toy: Toy, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = toy({"a.py": SAFE, "b.py": SAFE})
    real, calls = os.fsync, []

    def interrupted(handle: int) -> None:
        calls.append(handle)
        if len(calls) == 2:
            raise KeyboardInterrupt
        real(handle)

    monkeypatch.setattr(os, "fsync", interrupted)
    assert main([".", "--fix"]) == 130
    assert [(root / name).read_text() for name in ("a.py", "b.py")] == ["fixed = 1\n", SAFE]
    assert not list(root.glob(".memlint*"))
    assert capsys.readouterr().err.splitlines() == [
        "memlint: a.py: fixed",
        "memlint: b.py: not fixed",
        "memlint: interrupted",
    ]


#: ``interrupt`` sends Ctrl-C to the process itself, before or after a call of a function
_KILL = """
import os, pathlib, signal
import memlint.engine.fixing.fixing, memlint.engine.fixing.passes
signal.signal(signal.SIGINT, signal.default_int_handler)  # who is started in the background is told to ignore it
def interrupt(module, name, number, after=False):
    real, calls = getattr(module, name), []
    def late(*arguments, **more):
        calls.append(1)
        if len(calls) == number and not after:
            os.kill(os.getpid(), signal.SIGINT)
        result = real(*arguments, **more)
        if len(calls) == number and after:
            os.kill(os.getpid(), signal.SIGINT)
        return result
    setattr(module, name, late)
"""
no_signals = pytest.mark.skipif(os.name == "nt", reason="Windows has no such signal")


@no_signals
def test_ctrl_c_between_files_says_which_are_fixed(toy: Toy) -> None:
    root = toy(dict.fromkeys(("a.py", "b.py", "c.py"), SAFE))
    done = memlint(root, ".", "--fix", first=f"{_KILL}\ninterrupt(memlint.engine.fixing.fixing, 'write', 2)")
    assert done.returncode == 130
    assert [(root / name).read_text() for name in ("a.py", "b.py", "c.py")] == ["fixed = 1\n", SAFE, SAFE]
    assert done.stderr.decode().splitlines() == [
        "memlint: a.py: fixed",
        "memlint: b.py: not fixed",
        "memlint: c.py: not fixed",
        "memlint: interrupted",
    ]
    assert not done.stdout and not list(root.glob(".memlint*"))


@no_signals
def test_ctrl_c_waits_for_files_that_belong_together(toy: Toy) -> None:
    """It comes when the first of the two is replaced already, and when the second is."""
    files = {"a.py": 'mend("safe", "fixed = 1", "one")\n', "b.py": 'twin("one")\n', "c.py": SAFE}
    for number in (1, 2):
        root = toy(files)
        first = f"{_KILL}\ninterrupt(pathlib.Path, 'replace', {number}, after=True)"
        done = memlint(root, ".", "--fix", first=first)
        assert done.returncode == 130
        assert [(root / name).read_text() for name in files] == ["fixed = 1\n", "fixed = 1\n", SAFE]
        assert done.stderr.decode().splitlines() == [
            "memlint: a.py: fixed",
            "memlint: b.py: fixed",
            "memlint: c.py: not fixed",
            "memlint: interrupted",
        ]
        assert not list(root.glob(".memlint*"))


@no_signals
def test_ctrl_c_before_anything_is_written(toy: Toy) -> None:
    root = toy({"a.py": SAFE})
    done = memlint(root, ".", "--fix", first=f"{_KILL}\ninterrupt(memlint.engine.fixing.passes, 'harm', 1)")
    assert (done.returncode, (root / "a.py").read_text()) == (130, SAFE)
    assert done.stderr.decode().splitlines() == ["memlint: nothing was written", "memlint: interrupted"]
