"""The release of a package that a project says it needs."""

from __future__ import annotations

import re
from pathlib import Path

#: where projects say so, relative to their root
_FILES = ("requirements.txt", "setup.py", "setup.cfg", "pyproject.toml", "environment.yml", "environment.yaml")
#: no list of requirements is as long
_MAX_SIZE = 1 << 20


def newest_allowed(root: Path, *names: str) -> tuple[int, int] | None:
    """The (major, minor) release that the project below ``root`` pins one of the packages ``names`` to, or that it must
    stay below; None where no file of its root says so. Where several do, the newest."""
    pattern = re.compile(
        rf"(?:^|[\s\"'])(?:{'|'.join(map(re.escape, names))})\s*(?:={{1,3}}|~=|<=?)\s*v?(\d+)\.(\d+)", re.MULTILINE
    )
    found = [
        (int(major), int(minor))
        for file in _FILES
        for major, minor in pattern.findall(re.sub(r"#.*", "", _text(root / file)))
    ]
    return max(found, default=None)


def _text(file: Path) -> str:
    try:
        return file.read_text("utf-8", "replace") if file.stat().st_size <= _MAX_SIZE else ""
    except OSError:
        return ""
