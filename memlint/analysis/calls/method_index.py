"""The project's methods by name, for calls on receivers of unknown class.

A repository may hold several projects with the same classes in files of the same names. Code of one project then means
its own copy, which is the nearest.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from memlint.analysis.index.partners import Partners
from memlint.analysis.index.program import Function, Program, in_tests
from memlint.analysis.syntax.memo import kept_for

#: if a name has more methods than this, none is followed
MAX_METHODS = 8
#: if more files than this define a method of a name, no guess is made
FILES = 100


class NamedMethods:
    """Found on demand. ``near``: the file with the call; "" for any file."""

    def __init__(self, program: Program, partners: Partners) -> None:
        self._program = program
        self._partners = partners
        self._nearest: dict[tuple[str, str], list[Function]] = {}

    def are_many(self, name: str, near: str = "") -> bool:
        """Whether there are more methods of that name than are followed."""
        return len(self._places_of(name, near)) > MAX_METHODS

    def are_there(self, name: str) -> bool:
        """Whether there is any method of that name."""
        return bool(self._places_of(name, ""))

    @kept_for
    def few(self, name: str, near: str = "") -> list[Function]:
        """The methods of that name; empty if there are more than are followed."""
        places = self._places_of(name, near)
        classes = (self._program.module(key).cls(cls) for key, cls in places if len(places) <= MAX_METHODS)
        return [cls.methods[name] for cls in classes if cls is not None and name in cls.methods]

    def nearest(self, name: str, near: str) -> list[Function]:
        """For a name with many methods, those in the files nearest to ``near``, as many as are followed. Empty if too
        many files define one."""
        folder = near.rpartition("/")[0]
        known = self._nearest.get((name, folder))
        if known is None:
            known = self._nearest[name, folder] = []
            keys = [key for key in self._program.words.defining(name) if not in_tests(key)]
            if len(keys) > FILES:
                return known
            for key in sorted(keys, key=lambda key: -_shared(key, folder)):
                module = self._program.module(key)
                classes = (module.cls(one.name) for one in module.index.definitions if name in one.methods)
                known += [cls.methods[name] for cls in classes if cls is not None and name in cls.methods]
                if len(known) >= MAX_METHODS:
                    break
            del known[MAX_METHODS:]
        return known

    @kept_for
    def _places_of(self, name: str, near: str) -> list[tuple[str, str]]:
        """The classes (module, name) with a method of that name, at most one more than are followed."""
        folder = near.rpartition("/")[0]
        found = self._without_further_copies(name, folder) if folder and self._has_copies(name) else self._all(name)
        near_ones = ((key, cls) for key, cls in found if not near or self._partners.may_meet(near, key))
        return list(itertools.islice(near_ones, MAX_METHODS + 1))

    def _all(self, name: str) -> Iterator[tuple[str, str]]:
        for key in self._program.words.defining(name):
            for cls in self._classes(key, name):
                yield key, cls

    @kept_for
    def _has_copies(self, name: str) -> bool:
        """Whether several files of the same name define a method of that name."""
        files = [key.rpartition("/")[2] for key in self._program.words.defining(name)]
        return len({*files}) < len(files)

    @kept_for
    def _without_further_copies(self, name: str, folder: str) -> list[tuple[str, str]]:
        """The classes with a method of that name; of equal ones in files of one name, those nearest to the folder."""
        around = _folders_around(folder)
        nearest = (
            next(copies[one] for one in around if one in copies) for copies in self._copies_by_folder(name).values()
        )
        return [(key, cls) for _, key, cls in sorted(itertools.chain.from_iterable(nearest))]

    @kept_for
    def _copies_by_folder(self, name: str) -> dict[tuple[str, str], dict[str, list[tuple[int, str, str]]]]:
        """By name of file and class, the classes with a method of that name (position, module, class) under each
        folder."""
        copies: dict[tuple[str, str], dict[str, list[tuple[int, str, str]]]] = {}
        for at, (key, cls) in enumerate(self._all(name)):
            folder, _, file = key.rpartition("/")
            for one in _folders_around(folder):
                copies.setdefault((file, cls), {}).setdefault(one, []).append((at, key, cls))
        return copies

    @kept_for
    def _classes(self, key: str, method: str) -> list[str]:
        definitions = self._program.module(key).index.definitions
        return [one.name for one in definitions for name in one.methods if name == method]


def _shared(key: str, folder: str) -> int:
    """How many folders a file has in common with another folder, from the root down."""
    own, other = key.split("/")[:-1], folder.split("/")
    return next((at for at, (a, b) in enumerate(zip(own, other, strict=False)) if a != b), min(len(own), len(other)))


def _folders_around(folder: str) -> list[str]:
    """A folder and those around it, from the innermost to the root ("")."""
    outer = [folder[:at] for at in range(len(folder) - 1, 0, -1) if folder[at] == "/"]
    return [folder, *outer, ""] if folder else [""]
