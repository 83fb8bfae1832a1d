"""Whether something is there. Before Python 3.14, `Path` raises where a folder may not be looked into."""

from __future__ import annotations

import os
from pathlib import Path


def exists(path: Path) -> bool:
    """Whether anything is at ``path``; False where that cannot be told."""
    return os.path.exists(path)  # noqa: PTH110


def is_file(path: Path) -> bool:
    """Whether a file is at ``path``; False where that cannot be told."""
    return os.path.isfile(path)  # noqa: PTH113


def is_dir(path: Path) -> bool:
    """Whether a folder is at ``path``; False where that cannot be told."""
    return os.path.isdir(path)  # noqa: PTH112


def listed(folder: Path) -> tuple[str, ...] | None:
    """The names of what lies in a folder; None where it is no folder, or may not be looked into."""
    try:
        return tuple(os.listdir(folder))  # noqa: PTH208
    except OSError:
        return None
