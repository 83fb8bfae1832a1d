"""Existence of files and folders. Before Python 3.14, `Path` raises if a folder may not be read."""

from __future__ import annotations

import os
from pathlib import Path


def exists(path: Path) -> bool:
    """Whether ``path`` exists; False if unknown."""
    return os.path.exists(path)  # noqa: PTH110


def is_file(path: Path) -> bool:
    """Whether ``path`` is a file; False if unknown."""
    return os.path.isfile(path)  # noqa: PTH113


def is_dir(path: Path) -> bool:
    """Whether ``path`` is a folder; False if unknown."""
    return os.path.isdir(path)  # noqa: PTH112


def listed(folder: Path) -> tuple[str, ...] | None:
    """The names in a folder; None if it is no folder, or may not be read."""
    try:
        return tuple(os.listdir(folder))  # noqa: PTH208
    except OSError:
        return None
