"""Runs of the command whose cache is looked at."""

from __future__ import annotations

import json
import subprocess
import sys


def run(*arguments: str) -> tuple[list[tuple[str, str, int, str]], str]:
    """(code, file, line and reach of each finding, what was said on standard error) of ``memlint train.py``."""
    command = [sys.executable, "-m", "memlint", "train.py", "--output-format", "json", "--verbose", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    findings = json.loads(done.stdout)["findings"]
    return [(one["code"], one["path"], one["line"], one["reach"]) for one in findings], done.stderr
