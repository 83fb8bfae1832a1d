"""Runs ``memlint verify`` on small programs, with a Python that has torch, and reads its report."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
from torch_forks import forks
from torch_python import torch_python

ROOT = Path(__file__).resolve().parents[2]


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
    python = python or (forks(torch_python()) if before is None else torch_python())
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
