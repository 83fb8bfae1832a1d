"""Whether a file belongs to a package that other projects install: its users there are unknown."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

from memlint.patterns import lazy_pattern
from memlint.project.presence import is_file, listed
from memlint.reading import leads_out, read_inside

#: what describes a distribution, and what tells that it does (a file of this name may hold the settings of tools alone)
_DESCRIBES = {
    "setup.py": lazy_pattern(r"\bpackages\s*=|\bpy_modules\s*="),
    "setup.cfg": lazy_pattern(r"^\[options\]", re.MULTILINE),
    "pyproject.toml": lazy_pattern(r"^\[(?:project|build-system|tool\.poetry|tool\.flit)\b", re.MULTILINE),
}
#: folders beside a package that are not handed out with it
_BESIDE = frozenset({"examples", "example", "scripts", "tools", "benchmarks", "benchmark", "experiments", "notebooks"})

#: what makes pages of a project for its users, and the folders that it lies in
_PAGES = frozenset({"conf.py", "mkdocs.yml", "mkdocs.yaml", "_toctree.yml", ".readthedocs.yml", ".readthedocs.yaml"})
_FOLDERS = frozenset({"doc", "docs", "documentation", "site"})
#: the name of a distribution where it is described, and what a text tells others to install
_NAME = lazy_pattern(r"^[ \t]*name[ \t]*=[ \t]*[\"']?([\w.-]+)", re.MULTILINE)
_INSTALLED = lazy_pattern(
    r"\b(?:pip3?|uv add|poetry add|conda)\s+(?:install\s+)?(?:-U\s+|--upgrade\s+|--pre\s+)*([\w-][\w.-]*)"
)


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
    return any(_is_described(folder) for folder in path.parents if folder.is_relative_to(project.root))


def standing(project: Places, displays: Iterable[str]) -> tuple[bool, tuple[str, ...]]:
    """All that tells which of some files other projects may use: whether there are users, and the folders that are
    described as distributions."""
    folders: set[Path] = set()
    for folder in {project.path(display).parent for display in displays}:
        while folder not in folders and folder.is_relative_to(project.root):
            folders.add(folder)
            folder = folder.parent
    return has_users(project), tuple(sorted(str(folder) for folder in folders if _is_described(folder)))


def _is_described(folder: Path) -> bool:
    """Whether a file in a folder describes it as a distribution."""
    there = listed(folder) or ()
    return any(name in there and telling.search(read_inside(name, folder)) for name, telling in _DESCRIBES.items())


def has_users(project: Places) -> bool:
    """Whether a project says that others use what it hands out: it makes pages for them, or tells them to install it by
    its name. Many a training program is a package for its own convenience alone."""
    there = listed(project.root) or ()
    if any(
        name in _PAGES
        or (name.lower() in _FOLDERS and not _PAGES.isdisjoint(_below(project.root / name, project.root)))
        for name in there
    ):
        return True
    descriptions = (read_inside(file, project.root) for file in _DESCRIBES if file in there)
    names = {_plain(name) for text in descriptions for name in _NAME.findall(text)}
    readme = next((name for name in sorted(there) if name.lower().startswith("readme")), None)
    told = () if readme is None or not names else _INSTALLED.findall(read_inside(readme, project.root))
    return any(_plain(name) in names for name in told)


def _below(folder: Path, root: Path) -> set[str]:
    """The names in a folder of the project and in its ``source``."""
    inside = [one for one in (folder, folder / "source") if not leads_out(one, root)]
    return {name for one in inside for name in listed(one) or ()}


def _plain(name: str) -> str:
    """The name of a distribution as an index compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()
