"""The indexes of a project's files, parsed once for all analyses of the project in this process."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import msgspec

from memlint.frontend.index_records import ModuleIndex
from memlint.project import Earlier
from memlint.project.source import Sources

if TYPE_CHECKING:
    from memlint.analysis.index.definitions import Module


class Indexes:
    """The indexes of a project's files by key: those of this run, and those that earlier runs have stored."""

    def __init__(
        self, sources: Sources, earlier: Earlier | None = None, others: dict[str, ModuleIndex] | None = None
    ) -> None:
        """``others``: the indexes that analyses of other parts of the project have parsed in this process; shared and
        extended."""
        self.sources = sources
        self._earlier = earlier
        self._others = {} if others is None else others
        self._read: dict[str, ModuleIndex] = {}
        self._decoder = msgspec.msgpack.Decoder(ModuleIndex)
        #: keys without an index of an earlier run
        self._unknown: set[str] = set()
        #: the modules that hold the texts of their units, oldest first
        self.recent: deque[Module] = deque()

    def get(self, key: str) -> ModuleIndex | None:
        """The index of a file; None if the file has to be parsed."""
        found = self._read.get(key)
        if found is None and self._earlier is not None and key in self._others:
            found = self._read[key] = self._others[key]
        if found is None and self._earlier is not None and key not in self._unknown:
            kept = self._earlier.get(self.sources.digest(key))
            if kept is not None:
                try:
                    found = self._read[key] = self._decoder.decode(kept)
                except (msgspec.MsgspecError, RecursionError):  # an unreadable record is replaced by a new one
                    kept = None
            if kept is None:
                self._unknown.add(key)
        return found

    def read_for_others(self, key: str) -> ModuleIndex | None:
        """The index of a file that another part's analysis has parsed. It is not used before this part needs the file,
        as results must not depend on what ran before."""
        found = self._others.get(key)
        if found is not None:
            self._read[key] = found
        return found

    def add(self, key: str, index: ModuleIndex) -> None:
        """Store the index of a file, parsed from its text in ``sources``."""
        self._read[key] = self._others[key] = index
        if self._earlier is not None:
            self._earlier.put(self.sources.digest(key), msgspec.msgpack.encode(index))
