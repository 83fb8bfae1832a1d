"""Which files of a project may hand each other objects: some file imports both, directly or through others.

A repository may hold many programs. An object of one of them never reaches the code of another, however alike their
methods are named: it is passed along by code that refers to both ends, and every such reference begins with an import.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterable, Iterator

from memlint.analysis.index.loading import LIBRARIES, is_loaded, loaders
from memlint.analysis.index.program import Program
from memlint.analysis.index.programs import has_program, is_collected, is_program
from memlint.project.published import is_published

#: what is imported under these names lies outside the project, where it is not found in it
_OUTSIDE = sys.stdlib_module_names | LIBRARIES
#: stands for the code of other projects, which may import what is published, and all of a project without programs
_ELSEWHERE = ""
#: files that import one, past which any file may
MAX_FILES = 200


class Partners:
    """The import graph of a project, as far as it is asked for."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._imports: dict[str, frozenset[str]] = {}
        self._importers: dict[str, frozenset[str]] = {}
        self._above: dict[str, frozenset[str] | None] = {}

    def may_meet(self, key: str, other: str) -> bool:
        """Whether code of one of two files may be given what the other one defines."""
        above, above_other = self._all_importers(key), self._all_importers(other)
        return above is None or above_other is None or not above.isdisjoint(above_other)

    def may_import(self, key: str, other: str) -> bool:
        """Whether another file may import a file, directly or through others; each one does so with itself."""
        above = self._all_importers(key)
        return above is None or other in above

    def _all_importers(self, key: str) -> frozenset[str] | None:
        """A file, and those that import it, directly or through others; None where these are too many."""
        if key not in self._above:
            self._above[key] = self._closure(key)
        return self._above[key]

    def _closure(self, key: str) -> frozenset[str] | None:
        found, todo = {key}, [key]
        while todo:
            importers = self._importers_of(todo.pop())
            if len(found | importers) > MAX_FILES or any(self._above.get(one, found) is None for one in importers):
                return None
            todo += importers - found
            found |= importers
        return frozenset(found)

    def imports(self, key: str) -> frozenset[str]:
        """The files that a file imports, with the ``__init__.py`` of each package on the way. ``import model`` that
        resolves to nothing is taken for every file of that name: the program may be run from anywhere."""
        if key not in self._imports:
            found: set[str] = set()
            for item in self._program.module(key).index.imports:
                resolved = [self._program.resolve(name, key, item.level) for name in item.modules]
                targets = [target for target in resolved if target is not None]
                if not targets and item.module not in _OUTSIDE:
                    targets = self._by_name.get(item.module, [])
                for target in targets:
                    found |= {target, *self._packages(target)}
            self._imports[key] = frozenset(found - {key})
        return self._imports[key]

    @functools.cached_property
    def _by_name(self) -> dict[str, list[str]]:
        """The files by their name without its ending; packages by that of their folder."""
        found: dict[str, list[str]] = {}
        for key in self._program.project.sources:
            found.setdefault(_name(key), []).append(key)
        return found

    def _packages(self, key: str) -> Iterable[str]:
        """The ``__init__.py`` of the packages that a file lies in."""
        folder = key.rpartition("/")[0]
        while folder and f"{folder}/__init__.py" in self._program.project.sources:
            yield f"{folder}/__init__.py"
            folder = folder.rpartition("/")[0]

    def _importers_of(self, key: str) -> frozenset[str]:
        """The files that import a file. A file that none imports, nobody starts and no test runner collects may be
        loaded by its name."""
        if key not in self._importers:
            self._importers[key] = frozenset(self._find_importers(key)) if key != _ELSEWHERE else frozenset()
        return self._importers[key]

    def _find_importers(self, key: str) -> set[str]:
        found = {other for other in self._candidates(key) if other != key and key in self.imports(other)}
        if key.endswith("conftest.py"):
            return found | {other for other in self._below(key) if is_collected(other) and other != key}
        if is_program(self._program, key) or is_collected(key):
            return found
        if not found:
            module = self._program.module(key)
            found = {other for other, names in self._loaders.items() if names is None or is_loaded(module, names)}
        is_public = not self._has_program or is_published(self._program.project, key)
        return {*found, _ELSEWHERE} if is_public else found

    @functools.cached_property
    def _has_program(self) -> bool:
        return has_program(self._program)

    def _candidates(self, key: str) -> Iterable[str]:
        """The files that may import a file: they name it, or lie in its package."""
        naming = self._program.words.files(_name(key))
        return {*naming, *self._below(key)} if key.endswith("__init__.py") else naming

    def _below(self, key: str) -> Iterator[str]:
        """The files in the folder of a file, at any depth."""
        folder = key[: key.rfind("/") + 1]
        return (other for other in self._program.project.sources if other.startswith(folder))

    @functools.cached_property
    def _loaders(self) -> dict[str, frozenset[str] | None]:
        return loaders(self._program)


def _name(key: str) -> str:
    """What a file, or the package that it stands for, is imported as."""
    folder, _, name = key.rpartition("/")
    return folder.rpartition("/")[2] if name == "__init__.py" else name.partition(".")[0]
