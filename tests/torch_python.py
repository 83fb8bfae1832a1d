"""Finds a Python that has torch, for the tests that measure: the suite's own environment need not have it."""

from __future__ import annotations

import functools
import os
import subprocess
import sys

import pytest


@functools.cache
def _with(modules: tuple[str, ...]) -> str | None:
    check = f"import importlib.util as u, sys; sys.exit(not all(map(u.find_spec, {modules!r})))"
    for python in (sys.executable, os.environ.get("MEMLINT_TORCH_PYTHON")):
        if python and subprocess.run([python, "-c", check], check=False).returncode == 0:
            return python
    return None


def torch_python(*also: str) -> str:
    """A Python with torch, and the modules ``also``; skips the test where there is none."""
    python = _with(("torch", *also))
    if python is None:
        pytest.skip(f"no Python with {' and '.join(('torch', *also))}: name one by MEMLINT_TORCH_PYTHON")
    return python
