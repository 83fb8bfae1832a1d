"""Runs of the command whose cache is looked at."""

from __future__ import annotations

import json
import subprocess
import sys


def run(*arguments: str) -> tuple[list[tuple[str, str, int]], str]:
    """(code, file and line of each finding, what was said on standard error) of ``memlint train.py``."""
    command = [sys.executable, "-m", "memlint", "train.py", "--output-format", "json", "--verbose", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    return [(one["code"], one["path"], one["line"]) for one in json.loads(done.stdout)["findings"]], done.stderr
