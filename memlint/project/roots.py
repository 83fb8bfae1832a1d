"""Where a project begins, and what a file in it is called."""

from __future__ import annotations

import functools
import os
from pathlib import Path

from memlint.printable import printable
from memlint.project.presence import exists, is_dir, is_file

MARKERS = ("pyproject.toml", "setup.py", ".git")


def find_root(path: Path, cwd: Path) -> Path:
    """The project that ``path`` (absolute) belongs to.

    It is the nearest folder at or above it with a pyproject.toml, setup.py or .git; else the working directory where
    ``path`` lies below it; else the folder of the outermost package around it. A marker in the home
    directory or in ``/`` (dotfiles under git) makes no project of everything below it.
    """
    folder = path if is_dir(path) else path.parent
    for candidate in (folder, *folder.parents):
        if is_marked(candidate) and (candidate == path or not is_too_wide(candidate)):
            return candidate
    if not is_too_wide(cwd) and folder.is_relative_to(cwd):
        return cwd
    return outside_packages(folder)


def is_marked(folder: Path) -> bool:
    """Whether a folder says itself that it is a project."""
    return any(exists(folder / marker) for marker in MARKERS)


def outside_packages(folder: Path, known: dict[Path, Path] | None = None) -> Path:
    """The nearest folder at or above ``folder`` that is no package: where an import of it would start. ``known``: what
    was said of other folders, which is used and kept up."""
    known = {} if known is None else known
    if folder not in known:
        inside = is_file(folder / "__init__.py") and folder.parent != folder
        known[folder] = outside_packages(folder.parent, known) if inside else folder
    return known[folder]


def display_path(path: Path, cwd: Path) -> str:
    """``path`` relative to the working directory where it lies below it, else absolute, with ``/`` between parts."""
    text, prefix = str(path), os.path.join(cwd, "")  # noqa: PTH118
    if text.startswith(prefix):  # asked of each file: `relative_to` takes ten times as long
        text = text[len(prefix) :]
    elif path.is_relative_to(cwd):
        text = str(path.relative_to(cwd))
    text = text.replace(os.sep, "/")
    if text.isascii() and text.isprintable() and "\\" not in text:
        return text
    text = text.replace("\\", "\\\\")  # no other name looks like what follows
    try:
        text.encode()
    except UnicodeEncodeError:  # a file name that is no UTF-8 must not break the JSON
        text = os.fsencode(text).decode("utf-8", "backslashreplace")
    return printable(text)


def is_too_wide(folder: Path) -> bool:
    """Whether a folder is no project because of all that lies in it: ``/``, the home directory, /tmp."""
    return folder in _too_wide() or (_may_be_temporary(str(folder)) and folder == _temporary())


@functools.cache
def _too_wide() -> frozenset[Path]:
    places = {Path(Path.cwd().anchor)}
    try:
        places.add(Path.home())
    except RuntimeError:  # no home directory, in some containers
        pass
    return frozenset(places)


def _may_be_temporary(folder: str) -> bool:
    """Whether `_temporary` can say this, which imports much, and writes a file to try the folder."""
    told = (os.environ.get(name) for name in ("TMPDIR", "TEMP", "TMP"))
    known = {os.path.abspath(place) for place in told if place}  # noqa: PTH100
    return os.name != "posix" or folder in known | {"/tmp", "/var/tmp", "/usr/tmp"}


@functools.cache
def _temporary() -> Path:
    import tempfile

    return Path(tempfile.gettempdir())
