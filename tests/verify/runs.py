"""Runs ``memlint verify`` on small programs, with a Python that has torch, and reads its report."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from torch_forks import forks

ROOT = Path(__file__).resolve().parents[2]


@functools.cache
def _with_torch() -> str | None:
    for python in (sys.executable, os.environ.get("MEMLINT_TORCH_PYTHON")):
        if python and subprocess.run([python, "-c", "import torch"], capture_output=True, check=False).returncode == 0:
            return python
    return None


def python_with_torch() -> str:
    """A Python that has torch; skips the test where there is none."""
    python = _with_torch()
    if python is None:
        pytest.skip("no torch here; MEMLINT_TORCH_PYTHON names a Python that has it")
    return python


class Done(msgspec.Struct, frozen=True):
    """``report``: the JSON. ``said``: standard error."""

    code: int
    report: dict[str, Any]
    said: str

    @property
    def verdicts(self) -> dict[str, tuple[str, str]]:
        """Verdict and reason by rule."""
        return {row["code"]: (row["verdict"]["verdict"], row["verdict"]["reason"]) for row in self.report["findings"]}


def verified(*arguments: str, cwd: Path, before: tuple[str, ...] | None = None, python: str | None = None) -> Done:
    """A verification. ``before``: the launcher in front of ``-m memlint``, with its Python; ``python``: that of the
    program, which may come before it has imported torch."""
    python = python or (forks(python_with_torch()) if before is None else python_with_torch())
    end = arguments.index("--") if "--" in arguments else len(arguments)
    words = [*arguments[:end], "--isolated", "--python", python, "-o", "report.json", "--output-format", "json"]
    done = subprocess.run(
        [*(before or (sys.executable,)), "-m", "memlint", "verify", *words, *arguments[end:]],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=400,
    )
    file = cwd / "report.json"
    return Done(done.returncode, json.loads(file.read_text()) if file.exists() else {}, done.stderr)
