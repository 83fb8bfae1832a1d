"""The programs of fixtures/verify: each says in comments what `memlint verify` must say of it (table.py)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import verify
from table import PROGRAMS, VERDICTS, arguments, expected, expected_exit, is_slow, name_of, said, scripts


def _programs() -> list[object]:
    return [
        pytest.param(script, marks=[pytest.mark.slow] if is_slow(script) else [], id=name_of(script))
        for script in scripts()
    ]


def check(script: Path, device: str) -> None:
    """Verify a program, and compare what is said with what is so."""
    done = verify(*arguments(script, device), cwd=PROGRAMS)
    try:
        report = json.loads(done.stdout)
    except ValueError:
        raise AssertionError(done.stdout + done.stderr) from None
    assert said(report) == expected(script), done.stderr
    assert done.returncode == expected_exit(script), done.stderr


@pytest.mark.parametrize("script", _programs())
def test_verdicts_on_cpu(script: Path) -> None:
    check(script, "cpu")


@pytest.mark.gpu
@pytest.mark.parametrize("script", _programs())
def test_verdicts_on_cuda(script: Path) -> None:
    check(script, "cuda")


def test_every_comment_is_understood() -> None:
    for file in PROGRAMS.rglob("*.py"):
        for line in file.read_text(encoding="utf-8").split("\n"):
            if "verdict:" in line:
                assert VERDICTS.search(line), line
