"""``memlint clean``: remove the caches of earlier runs."""

from __future__ import annotations

import argparse
from pathlib import Path

from memlint.config import ConfigError
from memlint.engine.run import absolute
from memlint.engine.store.database import folder_of, remove
from memlint.printable import printable
from memlint.project import find_root


def clean(parsed: argparse.Namespace) -> int:
    """Run ``memlint clean`` and return its exit code. Raises ConfigError for a path that is not there."""
    cwd = Path.cwd()
    roots: dict[Path, None] = {}
    for path in parsed.paths or ["."]:
        if not path or not absolute(path, cwd).exists():
            raise ConfigError(f"there is no file or folder {path or '(an empty path)'}")
        roots[find_root(absolute(path, cwd), cwd)] = None
    for root in roots:
        gone, left = remove(root)
        print(printable(f"removed {gone}" if gone is not None else f"there is no cache in {folder_of(root)}"))
        for reason in left:
            print(printable(reason))
    return 0
