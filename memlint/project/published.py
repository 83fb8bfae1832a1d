"""Whether a file belongs to a package that other projects install: whoever uses it there is not in sight."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Protocol

from memlint.project.presence import is_file, listed

#: what describes a distribution, and what tells that it does (a file of this name may hold the settings of tools alone)
_DESCRIBES = {
    "setup.py": re.compile(r"\bpackages\s*=|\bpy_modules\s*="),
    "setup.cfg": re.compile(r"^\[options\]", re.MULTILINE),
    "pyproject.toml": re.compile(r"^\[(?:project|build-system|tool\.poetry|tool\.flit)\b", re.MULTILINE),
}
#: folders beside a package that are not handed out with it
_BESIDE = frozenset({"examples", "example", "scripts", "tools", "benchmarks", "benchmark", "experiments", "notebooks"})


class Places(Protocol):
    root: Path

    def path(self, display: str) -> Path:
        """The absolute path of a file."""


def is_published(project: Places, display: str) -> bool:
    """Whether a file of a project is in a package that a distribution may hand out."""
    path = project.path(display)
    if not path.is_relative_to(project.root) or not is_file(path.parent / "__init__.py"):
        return False
    if _BESIDE & set(path.relative_to(project.root).parts[:-1]):
        return False
    folder = path.parent
    while folder.is_relative_to(project.root):
        there = listed(folder) or ()
        if any(name in there and telling.search(_text(folder / name)) for name, telling in _DESCRIBES.items()):
            return True
        folder = folder.parent
    return False


def _text(file: Path) -> str:
    try:
        return file.read_text("utf-8", "replace")
    except OSError:
        return ""
