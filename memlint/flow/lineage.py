"""Which classes may inherit from which, told by names alone: most need not be lowered to be told apart."""

from __future__ import annotations

from collections.abc import Callable

from memlint.flow.words import Words
from memlint.frontend.index import Definition, ModuleIndex

#: stands for any name
_ANY = "*"


class Lineage:
    """Names of classes, and those of what is above them, whatever file they are of."""

    def __init__(self, words: Words, index: Callable[[str], ModuleIndex]) -> None:
        """``index``: of a file, by key."""
        self._words = words
        self._index = index
        self._bases: dict[str, frozenset[str]] = {}
        self._above: dict[str, frozenset[str]] = {}

    def may_be_below(self, definition: Definition, name: str) -> bool:
        """Whether a class may inherit from one of that name, at any distance; False is certain."""
        for base in definition.bases:
            above = self._names_above(base.rsplit(".", 1)[-1])
            if name in above or _ANY in above:
                return True
        return False

    def _names_above(self, name: str) -> frozenset[str]:
        """A name, and what classes of that name may inherit from."""
        if name not in self._above:
            found, todo = {name}, [name]
            while todo:
                new = self._named(todo.pop()) - found
                found |= new
                todo += new
            self._above[name] = frozenset(found)
        return self._above[name]

    def _named(self, name: str) -> frozenset[str]:
        """The bases that the project's classes of a name have, and the names that it was imported from."""
        if not name:
            return frozenset({_ANY})  # an expression
        if name not in self._bases:
            found: set[str] = set()
            for key in self._words.files(name):
                index = self._index(key)
                if not index.complete or name in index.bound or name in index.nested:
                    found.add(_ANY)
                for definition in index.definitions:
                    if definition.name == name:
                        found.update(base.rsplit(".", 1)[-1] for base in definition.bases)
                found.update(each.name or "" for each in index.imports if each.asname == name)
            self._bases[name] = frozenset(_ANY if one == "" else one for one in found)
        return self._bases[name]
