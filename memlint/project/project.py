"""One project: its files, and the resolution of dotted module names to them."""

from __future__ import annotations

import functools
import os.path
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol

from memlint.patterns import lazy_pattern
from memlint.project.libraries import LIBRARIES
from memlint.project.listing import is_notebook, parts
from memlint.project.notebooks import Notebooks
from memlint.project.pins import newest_allowed, newest_said
from memlint.project.presence import exists, is_dir, listed
from memlint.project.roots import display_path, outside_packages
from memlint.project.source import Sources

_SINCE_04 = lazy_pattern(
    r"no_grad|inference_mode|set_grad_enabled|is_grad_enabled|\.item\(\)|torch\.(device|tensor)\(|torch\.cuda\.amp"
)
#: the module of an absolute import: its first name, and the rest; and what is imported of it, in the same line
_IMPORTS = lazy_pattern(
    r"^[ \t]*(?:from|import)[ \t]+([^\W\d]\w*)\.([\w.]+)(?:[ \t]+import[ \t]+\(?([\w, \t]*))?", re.MULTILINE
)
#: so many modules at least have to lie in a package that the imports name, as a library may have one of the name, too
_FEWEST_NAMES = 3
#: of so many modules one may be absent: it is compiled, or its import is dead
_ONE_ABSENT_OF = 20


class Earlier(Protocol):
    """Results about files, stored for later runs by the digests of their contents (`Sources.digest`)."""

    def get(self, digest: bytes) -> bytes | None:
        """The stored result for a file; None if there is none."""

    def put(self, digest: bytes, value: bytes) -> None:
        """Store the result for a file."""

    def get_record(self, name: str) -> bytes | None:
        """The stored result for all files together; None if there is none."""

    def put_record(self, name: str, value: bytes) -> None:
        """Store the result for all files together, replacing the previous one."""


class Project:
    """The Python files and notebooks of one project.

    ``root``: its folder. ``sources``: all of its files by display path, read on first use. ``linted``: the keys that
    findings are reported on, in order. ``import_roots``: the folders that absolute imports start from: the
    root, its ``src/``, configured ones, those around the packages of linted files, and each script's own.
    """

    def __init__(
        self,
        root: Path,
        cwd: Path,
        linted: Iterable[Path],
        context: Iterable[Path],
        extra_roots: Iterable[Path] = (),
        given: Mapping[Path, bytes] | None = None,
        notebooks: Iterable[Path] = (),
    ) -> None:
        """``linted``, ``context`` and ``notebooks``: absolute paths of files; ``given``: contents that are not on the
        disk."""
        self.root = root
        self.notebooks = Notebooks(notebooks)
        self._made_of = (root, cwd, tuple(linted), tuple(context), tuple(extra_roots))
        self._given = dict(given or {})
        _, _, linted, context, extra_roots = self._made_of
        linted = tuple(dict.fromkeys(linted))
        self._keys = {path: display_path(path, cwd) for path in sorted({*linted, *context}, key=parts)}
        self.linted: tuple[str, ...] = tuple(sorted(self._keys[path] for path in linted))
        #: the linted files of the whole project, also in a part of it
        self.reported = frozenset(self.linted)
        contents = {self._keys[path]: raw for path, raw in (given or {}).items()}
        self.sources = Sources({key: path for path, key in self._keys.items()}, frozenset(self.linted), contents)
        self._paths = {key: path for path, key in self._keys.items()}
        self._by_name = {str(path): key for path, key in self._keys.items()}
        folders = sorted({path.parent for path in linted}, key=parts)
        self._packages = {folder for folder in {path.parent for path in self._keys} if self.is_package(folder)}
        outside: dict[Path, Path] = {}
        own = (folder if folder not in self._packages else outside_packages(folder, outside) for folder in folders)
        self._given_roots = (root, root / "src", *extra_roots)
        self._own_roots = tuple(dict.fromkeys(own))
        self.import_roots: tuple[Path, ...] = tuple(dict.fromkeys((*self._given_roots, *self._own_roots)))
        self._resolved: dict[tuple[str, Path, int], str | None] = {}
        self._asked: dict[tuple[str, str, int], str | None] = {}
        self._repositories: dict[Path, Path] = {}
        #: results about the files that live as long as the project and its parts
        self.kept: dict[str, Any] = {}
        #: results of earlier runs; None if they are not used
        self.earlier: Earlier | None = None

    @functools.cached_property
    def newest_torch(self) -> tuple[int, int] | None:
        """The release (major, minor) of torch that the project requires, or below which it must stay; None for any."""
        return newest_allowed(self.root, "torch", "pytorch")

    @functools.cached_property
    def said_torch(self) -> tuple[int, int] | None:
        """The release (major, minor) of torch in the project's README; None for any."""
        return newest_said(self.root)

    def knows_grad_mode(self, display: str) -> bool:
        """Whether a file uses an API that came with torch 0.4, which removed ``volatile=True``."""
        return _SINCE_04.search(self.sources[display].text) is not None

    @functools.cached_property
    def predates_grad_mode(self) -> bool:
        """Whether the files wrap tensors in ``Variable`` and use no API of torch 0.4 or later."""
        return any("Variable(" in self.sources[display].text for display in self.sources) and not any(
            self.knows_grad_mode(display) for display in self.sources
        )

    def with_contents(self, contents: Mapping[str, bytes]) -> Project:
        """The project with other contents of some of its files (by display path)."""
        given = {**self._given, **{self._paths[display]: raw for display, raw in contents.items()}}
        project = Project(*self._made_of, given, self.notebooks.paths)
        project.sources.keep(self.sources, frozenset(contents))
        return project

    def part(self, linted: tuple[str, ...]) -> Project:
        """The project with these linted files alone (by display path, in order)."""
        part = object.__new__(Project)
        vars(part).update(vars(self))  # (`copy.copy` asks `__reduce__`, which leaves behind all that was read)
        part.linted = linted
        return part

    def size(self, display: str) -> int:
        """The bytes of a program, 0 where nobody can tell."""
        if is_notebook(self._paths[display]):
            return len(self.sources[display].text)  # (most of it is what its cells have put out)
        if self.sources.is_given(display):
            return len(self.sources.raw(display))
        try:
            return self._paths[display].stat().st_size
        except OSError:
            return 0

    def __reduce__(self) -> tuple[object, ...]:
        # what was read of it stays behind
        return Project, (*self._made_of, self._given, self.notebooks.paths)

    def path(self, display: str) -> Path:
        """The absolute path of a file."""
        return self._paths[display]

    def repository(self, display: str) -> Path:
        """The repository in the project that a file belongs to: the nearest folder with a ``.git`` around it, or the
        project's root. Others than the root's are submodules, and clones that lie beside the project's own code."""
        return self._repository_of(self._paths[display].parent)

    def _repository_of(self, folder: Path) -> Path:
        """As `repository`, of a folder."""
        if folder not in self._repositories:
            ends = folder in (self.root, folder.parent) or exists(folder / ".git")
            self._repositories[folder] = folder if ends else self._repository_of(folder.parent)
        return self._repositories[folder]

    def relative(self, display: str) -> str:
        """The path of a file from the project's root (for what must not depend on the working directory)."""
        path = self._paths[display]
        return path.relative_to(self.root).as_posix() if path.is_relative_to(self.root) else path.as_posix()

    def dotted(self, display: str) -> str:
        """The name under which a file is imported: from the outermost package around it."""
        path = self._paths[display]
        parts = [] if path.name == "__init__.py" else [path.stem]
        folder = path.parent
        while folder in self._packages:
            parts.append(folder.name)
            folder = folder.parent
        return ".".join(reversed(parts))

    def resolve(self, module: str, importer: str, level: int) -> str | None:
        """The source that ``module`` means in the file ``importer`` (a key), or None where it is not of this project.

        ``level`` counts the dots of a relative import; ``module`` may then be empty. A package is its
        ``__init__.py``. An absolute name is looked up as Python would when the file is run from its project: beside a
        script; then, unless it is one of the standard library's, in the folders above the importer that are no packages
        and in their ``src/``, from the nearest one up (a project may hold several packages of a name: examples, tests,
        vendored copies), then in the other import roots, and beside it after all.
        """
        question = (module, importer, level)
        if question not in self._asked:  # paths are slow keys
            folder = self._paths[importer].parent
            asked = (module, folder, level)
            if asked not in self._resolved:
                found = self._relative(module, folder, level) if level else self._absolute(module, folder)
                self._resolved[asked] = found
            self._asked[question] = self._resolved[asked]
        return self._asked[question]

    def _relative(self, module: str, folder: Path, level: int) -> str | None:
        for _ in range(level - 1):
            if folder in (self.root, folder.parent):
                return None
            folder = folder.parent
        return self._at(folder, module)

    def _absolute(self, module: str, folder: Path) -> str | None:
        first = module.partition(".")[0]
        if first == "torch" and self._at(self.root, "torch.nn") is None:
            return None  # (a file of that name, read as the library, would take every guard's meaning away)
        if folder not in self._packages and (found := self._at(folder, module)):
            return found
        if first in sys.stdlib_module_names:
            return None
        found = self._above(module, folder)
        found = found or next((at for root in self._given_roots if (at := self._at(root, module))), None)
        found = found or self._nearest(module, folder, self._own_roots)
        if "." in module:  # a script may put the folder on `sys.path` (``lib/core/train.py`` as ``core.train``)
            found = found or self._nearest(module, folder, self._holders.get(first, ()))
        return found or self._below_itself(module) or self._beside_script(module, folder)

    def _above(self, module: str, folder: Path) -> str | None:
        """In the nearest folder above the importer that is no package, or in its ``src/``."""
        if not folder.is_relative_to(self.root):
            return None
        for parent in (folder, *folder.parents):
            if parent not in self._packages and (found := self._at(parent, module) or self._at(parent / "src", module)):
                return found
            if parent == self.root:
                break
        return None

    def _nearest(self, module: str, folder: Path, places: Iterable[Path]) -> str | None:
        """In that of some folders which is the nearest to the importer; None where several are as near."""
        found = {key: len(os.path.commonpath((place, folder))) for place in places if (key := self._at(place, module))}
        nearest = [key for key, shared in found.items() if shared == max(found.values())]
        return nearest[0] if len(nearest) == 1 else None

    def _beside_script(self, module: str, folder: Path) -> str | None:
        """``from model import Net`` in a folder that is a package and holds ``model.py``: its files run as scripts.
        What has the name of a library is that, as it is where the package is imported."""
        return None if module.partition(".")[0] in LIBRARIES else self._at(folder, module)

    def _below_itself(self, module: str) -> str | None:
        """``net.layers`` in a package ``net`` whose setup.py lies inside of it: the project is the package's folder."""
        first, _, rest = module.partition(".")
        if not rest or (first != self.root.name and first not in self._own_names):
            return None
        return self._at(self.root, rest)

    @functools.cached_property
    def _own_names(self) -> frozenset[str]:
        """Other names of a package that is the project's root, as a checkout may have any name (``net-1.2``, ``src``):
        those under which the files import modules that lie in it, all but a few, and mention what is imported."""
        if self.root not in self._packages:
            return frozenset()
        found: dict[str, dict[str, set[str]]] = {}
        for display in self.sources:
            for first, rest, names in _IMPORTS.findall(self.sources[display].text):
                given = found.setdefault(first, {}).setdefault(rest, set())
                given.update(words[0] for one in names.split(",") if (words := one.split()))
        return frozenset(
            first
            for first, modules in found.items()
            if len(modules) >= _FEWEST_NAMES
            and first not in LIBRARIES
            and sum(not self._may_hold(*item) for item in modules.items()) * _ONE_ABSENT_OF <= len(modules)
        )

    def _may_hold(self, module: str, names: Iterable[str]) -> bool:
        """Whether a module lies in the root, and each of the names is a module below it or stands in its text."""
        found = self._at(self.root, module)
        if found is None:
            return False
        text = self.sources[found].text
        return "import *" in text or all(name in text or self._at(self.root, f"{module}.{name}") for name in names)

    def is_missing(self, module: str, importer: str, level: int) -> bool:
        """Whether nothing on the disk bears the name of a module that a relative import of ``level`` dots names, be it
        compiled, ignored or no Python at all; False where that cannot be told."""
        folder = self._paths[importer].parent
        for _ in range(level - 1):
            if folder == self.root or not folder.is_relative_to(self.root):
                return False
            folder = folder.parent
        for part in module.split("."):
            there = listed(folder)
            if there is None:
                return False
            if not any(entry.partition(".")[0] == part for entry in there):
                return True
            folder = folder / part
            if not is_dir(folder):
                return False
        return False

    @functools.cached_property
    def _holders(self) -> dict[str, list[Path]]:
        """The folders that hold folders of a name."""
        folders: set[Path] = set()
        for folder in {path.parent for path in self._keys}:
            while folder not in folders and folder != self.root and folder.is_relative_to(self.root):
                folders.add(folder)
                folder = folder.parent
        found: dict[str, list[Path]] = {}
        for folder in sorted(folders):
            found.setdefault(folder.name, []).append(folder.parent)
        return found

    def _at(self, folder: Path, module: str) -> str | None:
        base = "/".join((str(folder), *module.split("."))) if module else str(folder)
        candidates = (f"{base}/__init__.py", f"{base}.py") if module else (f"{base}/__init__.py",)
        return next((self._by_name[name] for name in candidates if name in self._by_name), None)

    def is_package(self, folder: Path) -> bool:
        """Whether a folder has an ``__init__.py`` among the project's files."""
        return folder / "__init__.py" in self._keys
