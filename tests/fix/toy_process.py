"""The command in a process of its own, with the toy analysis."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

_SCRIPT = f"""
import importlib.util, sys
import memlint.cli, memlint.analysis
spec = importlib.util.spec_from_file_location("toys", {str(Path(__file__).with_name("conftest.py"))!r})
toys = importlib.util.module_from_spec(spec)
spec.loader.exec_module(toys)
memlint.analysis.analyse = lambda project, options: toys.ToyAnalysis(project)
"""


def memlint(root: Path, *arguments: str, content: bytes = b"", first: str = "") -> subprocess.CompletedProcess[bytes]:
    """``content``: standard input; ``first``: a statement that runs before memlint does."""
    return subprocess.run(
        [sys.executable, "-c", f"{_SCRIPT}\n{first}\nsys.exit(memlint.cli.main())", *arguments],
        input=content, capture_output=True, cwd=root, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}, check=False,
    )  # fmt: skip
