"""Small files in a folder that several processes share: whoever reads one sees all of it."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import Any


def write(folder: Path, name: str, data: Any, *, once: bool = False) -> None:
    """Write ``name`` and .json, in place of what was there; ``once``: unless another process was quicker."""
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
    """What was written; None where it is not there."""
    try:
        return json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
