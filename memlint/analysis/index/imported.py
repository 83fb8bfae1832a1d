"""Which files of a project a file may run: what it imports or loads, directly or through other files."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping

from memlint.analysis.index.loading import is_loaded, knows, loaders
from memlint.analysis.index.program import Program
from memlint.analysis.index.programs import is_collected
from memlint.patterns import lazy_pattern

_WORD = lazy_pattern(r"\w+")


class Imported:
    """Computed on demand.

    ``imports``: the files that a file imports directly. ``unknowing``: the files that may load any file that
    they know. A set of files is a number with a bit for each, since there is one for each file of a large project.
    """

    def __init__(self, program: Program, imports: Callable[[str], frozenset[str]], unknowing: frozenset[str]) -> None:
        self._program = program
        self._imports = imports
        self._unknowing = unknowing
        self._found: dict[str, int] = {}
        self._bits = {key: 1 << at for at, key in enumerate(program.project.sources)}

    def may_run(self, key: str, other: str) -> bool:
        """Whether a file may run another one. A file runs itself."""
        if key not in self._found:
            self._found[key] = self._closure(key)
        return bool(self._found[key] & self._bits[other])

    def _closure(self, key: str) -> int:
        found, todo = 0, [key]
        while todo:
            one = todo.pop()
            if found & self._bits[one]:
                continue
            known = self._found.get(one, 0)
            found |= self._bits[one] | known
            if not known:
                todo += self._directly(one)
        return found

    def _directly(self, key: str) -> Iterator[str]:
        """The files that a file may run itself. One that does not parse may import any."""
        if not self._program.module(key).index.complete:
            yield from self._bits
        elif key in self._unknowing:
            yield from (other for other in self._bits if knows(self._program, key, other))
        yield from self._imports(key)
        words = set(_WORD.findall(self._program.module(key).text)) if self._cloned else ()
        for name, files in self._cloned.items():
            if name in words:
                yield from (other for other in files if knows(self._program, key, other))
        yield from self._loaded.get(key, ())
        if is_collected(key):
            yield from (other for other in self._fixtures if key.startswith(other.removesuffix("conftest.py")))

    @functools.cached_property
    def _cloned(self) -> Mapping[str, list[str]]:
        """The files of repositories that are cloned into the project, by the names under which a library may load them
        for the code around: those of the outermost package and of the repository."""
        project = self._program.project
        found: dict[str, list[str]] = {}
        for key in self._bits:
            if project.repository(key) != project.root:
                for name in (project.dotted(key).partition(".")[0], project.repository(key).name):
                    found.setdefault(name, []).append(key)
        return found

    @functools.cached_property
    def _loaded(self) -> Mapping[str, list[str]]:
        """By file, the files that it loads by a name of which a part is known."""
        module = self._program.module
        named = ((key, names) for key, names in loaders(self._program).items() if names)
        return {key: [other for other in self._bits if is_loaded(module(other), names)] for key, names in named}

    @functools.cached_property
    def _fixtures(self) -> list[str]:
        """The files that run with the tests of their folder."""
        return [key for key in self._bits if key.rpartition("/")[2] == "conftest.py"]
