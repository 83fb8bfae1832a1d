"""The release of a package that a project declares."""

from __future__ import annotations

import re
from pathlib import Path

from memlint.patterns import lazy_pattern
from memlint.project.presence import listed
from memlint.reading import read_inside

#: files with such declarations, relative to the root
_FILES = ("requirements.txt", "setup.py", "setup.cfg", "pyproject.toml", "environment.yml", "environment.yaml")
#: declarations of a torch release in a README
_SAID = lazy_pattern(
    r"\b(?:py)?torch\b[\s*`_()\[\]-]{0,20}(?:version|ver\.?|v)?[\s:=~(`*-]{0,20}v?(\d+)\.(\d+)(?:\.\w+)*(?![\w.]|\s*s\b)",
    re.IGNORECASE,
)
#: words of a line about several releases, or about all from one on
_OTHERS = lazy_pattern(
    r"\d\.\d|[+<>≥≤]|\b(?:later|newer|higher|above|greater|up|onwards?|least|from|since|min|minimum|or|to|ported)\b",
    re.IGNORECASE,
)
#: the address of a link
_ADDRESS = lazy_pattern(r"\]\([^)]*\)")


def newest_allowed(root: Path, *names: str) -> tuple[int, int] | None:
    """The (major, minor) release to which the project pins one of the packages, or below which it must stay; None if no
    file in its root declares one, the newest of several."""
    pattern = re.compile(
        rf"(?:^|[\s\"'])(?:{'|'.join(map(re.escape, names))})\s*(?:={{1,3}}|~=|<=?)\s*v?(\d+)\.(\d+)", re.MULTILINE
    )
    found = [
        (int(major), int(minor))
        for file in _FILES
        for major, minor in pattern.findall(re.sub(r"#.*", "", read_inside(file, root)))
    ]
    return max(found, default=None)


def newest_said(root: Path) -> tuple[int, int] | None:
    """The (major, minor) release of torch in a project's README, the newest of several; None if it names none, or
    allows later ones."""
    readme = next((name for name in sorted(listed(root) or ()) if name.lower().startswith("readme")), None)
    text = _ADDRESS.sub("]", read_inside(readme, root)) if readme is not None else ""
    lines = [line for line in text.splitlines() if _SAID.search(line)]
    if any(_OTHERS.search(_SAID.sub("", line)) for line in lines):
        return None
    return max(((int(major), int(minor)) for line in lines for major, minor in _SAID.findall(line)), default=None)
