"""Runs memlint as people do: a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from torch_forks import forks
from torch_python import torch_python

ROOT = Path(__file__).resolve().parents[2]


def verify_command(*arguments: str, forked: bool = False) -> list[str]:
    """The command line of a verification by the Python that has torch. What stands behind `--` stays behind."""
    python = forks(torch_python()) if forked else torch_python()
    return [sys.executable, "-m", "memlint", "verify", "--python", python, *arguments]


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "200", **more}


def verify(
    *arguments: str,
    cwd: Path,
    given: str | None = None,
    timeout: float = 300,
    more: Mapping[str, str] | None = None,
    forked: bool = False,
) -> subprocess.CompletedProcess[str]:
    """The finished ``memlint verify``. ``given``: what stands on standard input; ``more``: environment variables;
    ``forked``: the program may come before torch is imported (`torch_forks`)."""
    return subprocess.run(
        verify_command(*arguments, forked=forked),
        cwd=cwd,
        env=environment(**(more or {})),
        input=given,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
