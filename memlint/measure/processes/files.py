"""Small JSON files in a folder that several processes share, written atomically."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import Any


def write(folder: Path, name: str, data: Any, *, once: bool = False) -> None:
    """Write or replace ``name``.json. ``once``: keep the file if another process has written it already."""
    target = folder / f"{name}.json"
    beside = folder / f"{name}.{os.getpid()}.part"
    beside.write_text(json.dumps(data), encoding="utf-8")
    if not once:
        beside.replace(target)
        return
    with contextlib.suppress(FileExistsError):
        os.link(beside, target)
    beside.unlink()


def read(folder: Path, name: str) -> Any:
    """The data of a file; None if it does not exist."""
    try:
        return json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
