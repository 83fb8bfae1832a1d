"""Which classes may inherit from which, from the names in indexes alone: without lowering most classes."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable

from memlint.analysis.index.word_index import Words
from memlint.frontend.index_records import Definition, Imported, ModuleIndex

#: a base that may be any class
_ANY = "*"
#: in place of a file's key: any file that defines the name
_SOMEWHERE = ""


class Lineage:
    """The names of the ancestors of classes, as far as imports and definitions tell."""

    def __init__(
        self,
        words: Words,
        index: Callable[[str], ModuleIndex],
        may_define: Callable[[str, str], bool],
        resolve: Callable[[str, str, int], str | None],
    ) -> None:
        """``index``: the index of a file; ``may_define``: whether a file may define a class of that name, from its
        text; ``resolve``: the project's file for a module (name, importer, level), or None."""
        self._words = words
        self._index = index
        self._may_define = may_define
        self._resolve = resolve
        self._next: dict[tuple[str, str], frozenset[tuple[str, str]]] = {}
        self._above: dict[tuple[str, str], frozenset[str]] = {}

    def may_be_below(self, key: str, definition: Definition, name: str) -> bool:
        """Whether a class may inherit from one of that name, at any distance. False is certain."""
        return any(not self._names_above(key, base).isdisjoint((name, _ANY)) for base in definition.bases)

    def _names_above(self, key: str, base: str) -> frozenset[str]:
        """The names of a base and of all its ancestors."""
        if (key, base) not in self._above:
            found, todo = {(key, base)}, [(key, base)]
            while todo:
                new = self._further(*todo.pop()) - found
                found |= new
                todo += new
            self._above[key, base] = frozenset(name.rsplit(".", 1)[-1] for _, name in found)
        return self._above[key, base]

    def _further(self, key: str, base: str) -> frozenset[tuple[str, str]]:
        """One step up from a base that is named in a file: the bases of the classes that it may be, and its names in
        other files."""
        if (key, base) not in self._next:
            found = self._defined_somewhere(base) if key == _SOMEWHERE else self._named_in(key, base)
            self._next[key, base] = frozenset((one, name or _ANY) for one, name in found)
        return self._next[key, base]

    def _named_in(self, key: str, base: str) -> Iterable[tuple[str, str]]:
        index = self._index(key)
        first, last = base.split(".", 1)[0], base.rsplit(".", 1)[-1]
        if base == _ANY or not index.complete or first in index.bound or last in index.nested:
            return ((key, _ANY),)
        own = [each for each in index.definitions if each.name == first]
        imports = [each for each in index.imports if each.binds == first]
        if not own and not imports:
            if hasattr(builtins, first):
                return ()
            imports = [each for each in index.imports if each.name == "*"]
            if not imports:
                return ((key, _ANY),)  # it may be a global that a function binds
        found = [(key, inner) for each in own for inner in each.bases]
        for each in imports:
            if self._is_inside(key, each):
                found.append((_SOMEWHERE, last))
                if each.name not in (None, "*") and base == first:
                    found.append((_SOMEWHERE, each.name or ""))
        return found

    def _defined_somewhere(self, name: str) -> Iterable[tuple[str, str]]:
        found: list[tuple[str, str]] = []
        for key in self._words.files(name):
            if not self._may_define(key, name):
                continue  # it only uses the class; parsing all users would mean to parse a large project
            index = self._index(key)
            if not index.complete or name in index.bound:
                return ((key, _ANY),)
            found += [(key, base) for each in index.definitions if each.name == name for base in each.bases]
            found += [
                (_SOMEWHERE, each.name)
                for each in index.imports
                if each.asname == name and each.name is not None and self._is_inside(key, each)
            ]
        return found

    def _is_inside(self, key: str, imported: Imported) -> bool:
        """Whether an import may bring something of the project."""
        if imported.level or self._resolve(imported.module, key, 0) is not None:
            return True
        return imported.name is not None and self._resolve(f"{imported.module}.{imported.name}", key, 0) is not None
