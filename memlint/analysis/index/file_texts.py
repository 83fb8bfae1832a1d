"""What a project's files say by themselves, read once for all analyses of the project in this process."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

import msgspec

from memlint.analysis.index.word_index import Words
from memlint.frontend.index_records import ModuleIndex
from memlint.project import Earlier

if TYPE_CHECKING:
    from memlint.analysis.index.definitions import Module

_NAME = "indexes"


class Indexes:
    """The indexes of a project's files, by key: those that were read, and those that earlier runs have kept."""

    def __init__(self, earlier: Earlier | None = None, others: dict[str, ModuleIndex] | None = None) -> None:
        """``others``: those that analyses of the project's parts have read in this process, this one included."""
        self._earlier = earlier
        self._others = {} if others is None else others
        self._read: dict[str, ModuleIndex] = {}
        self._decoder = msgspec.msgpack.Decoder(ModuleIndex)
        #: keys that earlier runs know nothing of
        self._unknown: set[str] = set()
        #: the modules that were cut into units of late
        self.cut: deque[Module] = deque()

    def get(self, key: str, text: str) -> ModuleIndex | None:
        """The index of a file; None where it is to be read first."""
        found = self._read.get(key)
        if found is None and self._earlier is not None and key in self._others:
            found = self._read[key] = self._others[key]
        if found is None and self._earlier is not None and key not in self._unknown:
            kept = self._earlier.get(text)
            if kept is not None:
                try:
                    found = self._read[key] = self._decoder.decode(kept)
                except msgspec.MsgspecError:  # (what is read in its place takes its place)
                    kept = None
            if kept is None:
                self._unknown.add(key)
        return found

    def read_for_others(self, key: str) -> ModuleIndex | None:
        """The index of a file that is to be read, where the analysis of another part has read it. (Until it is asked
        for, this one does not know it: what it finds must not hang on who came before.)"""
        found = self._others.get(key)
        if found is not None:
            self._read[key] = found
        return found

    def add(self, key: str, text: str, index: ModuleIndex) -> None:
        """Take what was read of a file."""
        self._read[key] = self._others[key] = index
        if self._earlier is not None:
            self._earlier.put(text, msgspec.msgpack.encode(index))


class Texts:
    """``indexes``: of the files that were read, by key; ``words``: which files hold a word."""

    def __init__(self, project: Any) -> None:
        self.indexes = Indexes(project.earlier, project.kept.setdefault(_NAME, {}))
        self.words = Words(project, self.indexes.get)
