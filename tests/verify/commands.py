"""Runs memlint as people do: a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from torch_python import torch_python

ROOT = Path(__file__).resolve().parents[2]


def verify_command(*arguments: str) -> list[str]:
    """The command line of a verification by the Python that has torch. What stands behind `--` stays behind."""
    return [sys.executable, "-m", "memlint", "verify", "--python", torch_python(), *arguments]


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "200", **more}


def verify(
    *arguments: str, cwd: Path, given: str | None = None, timeout: float = 300, more: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """The finished ``memlint verify``. ``given``: what stands on standard input; ``more``: environment variables."""
    return subprocess.run(
        verify_command(*arguments),
        cwd=cwd,
        env=environment(**(more or {})),
        input=given,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
