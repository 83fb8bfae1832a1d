"""Which classes may inherit from which, told by names alone: most need not be lowered to be told apart."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable

from memlint.analysis.index.word_index import Words
from memlint.frontend.index_records import Definition, Imported, ModuleIndex

#: stands for any name
_ANY = "*"
#: in place of a file: a name that some file defines
_SOMEWHERE = ""


class Lineage:
    """The names of what is above classes, as far as imports and definitions tell."""

    def __init__(
        self,
        words: Words,
        index: Callable[[str], ModuleIndex],
        may_define: Callable[[str, str], bool],
        resolve: Callable[[str, str, int], str | None],
    ) -> None:
        """``index``: of a file, by key; ``may_define``: whether a file, by key, may give a name to a class, told
        without its index; ``resolve``: the file of the project that a module (name, importer, level) is, None for
        others."""
        self._words = words
        self._index = index
        self._may_define = may_define
        self._resolve = resolve
        self._next: dict[tuple[str, str], frozenset[tuple[str, str]]] = {}
        self._above: dict[tuple[str, str], frozenset[str]] = {}

    def may_be_below(self, key: str, definition: Definition, name: str) -> bool:
        """Whether a class of a file may inherit from one of that name, at any distance; False is certain."""
        return any(not self._names_above(key, base).isdisjoint((name, _ANY)) for base in definition.bases)

    def _names_above(self, key: str, base: str) -> frozenset[str]:
        """What a base is called, and what is above it."""
        if (key, base) not in self._above:
            found, todo = {(key, base)}, [(key, base)]
            while todo:
                new = self._further(*todo.pop()) - found
                found |= new
                todo += new
            self._above[key, base] = frozenset(name.rsplit(".", 1)[-1] for _, name in found)
        return self._above[key, base]

    def _further(self, key: str, base: str) -> frozenset[tuple[str, str]]:
        """The bases of the classes that a base of a file may be, and the names that these have elsewhere."""
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
                return ((key, _ANY),)  # (a global of a function, perhaps)
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
                continue  # (it uses the class: to read all that do would mean to read a large project)
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
        """Whether what a file imports may be of the project."""
        if imported.level or self._resolve(imported.module, key, 0) is not None:
            return True
        return imported.name is not None and self._resolve(f"{imported.module}.{imported.name}", key, 0) is not None
