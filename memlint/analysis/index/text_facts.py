"""What the text of a file tells by itself, stored for later runs: to learn it again, each file would have to be parsed
or searched, also those of which nothing else is asked."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar, cast

import msgspec

from memlint.project import Project

_T = TypeVar("_T")
#: a new record is stored if more than this many files, and more than this share of all files, are not in the old one
_FEW, _MANY = 16, 0.02
_RECORD = msgspec.msgpack.Decoder(dict[bytes, dict[str, bytes]])


def is_worth_storing(missing: int, files: int) -> bool:
    """Whether a record of ``files`` files is to be replaced, as the old one lacks ``missing`` of them."""
    return missing > max(_FEW, _MANY * files)


class TextFact(NamedTuple, Generic[_T]):
    """A fact. ``name``: in the record; ``kind``: the type of its values, as msgspec reads it; ``of``: its value for a
    text."""

    name: str
    kind: object
    of: Callable[[str], _T]


class TextFacts:
    """The facts of a project's files: from the record of an earlier run, or from their texts."""

    def __init__(self, project: Project) -> None:
        self._sources = project.sources
        self._earlier = project.earlier
        #: the record's name; an editor has several projects
        self._name = f"facts of {project.root}"
        self._known: dict[tuple[str, str], object] = {}
        self._new: dict[bytes, dict[str, bytes]] = {}

    def get(self, fact: TextFact[_T], key: str) -> _T:
        """The value of a fact for a file."""
        place = fact.name, key
        if place not in self._known:
            self._known[place] = self._read(fact, key)
        return cast("_T", self._known[place])

    def keep(self) -> None:
        """Store the facts for later runs, if enough files are not in the old record."""
        if self._earlier is None or not is_worth_storing(len(self._new), len(self._sources)) or self._sources.changed:
            return
        current = set(map(self._sources.digest, self._sources))
        kept = {digest: facts for digest, facts in self._recorded.items() if digest in current}
        for digest, facts in self._new.items():
            kept[digest] = {**kept.get(digest, {}), **facts}
        self._earlier.put_record(self._name, msgspec.msgpack.encode(kept))

    def _read(self, fact: TextFact[_T], key: str) -> _T:
        if self._earlier is None:
            return fact.of(self._sources[key].text)
        recorded = self._recorded.get(self._sources.digest(key), {}).get(fact.name)
        with contextlib.suppress(msgspec.MsgspecError, RecursionError):
            if recorded is not None:
                return cast("_T", msgspec.msgpack.decode(recorded, type=fact.kind))
        source = self._sources[key]
        value = fact.of(source.text)
        # each run is to say of a file that it cannot be read; a lone surrogate in a string cannot be stored
        with contextlib.suppress(UnicodeEncodeError):
            if source.unreadable is None:
                self._new.setdefault(self._sources.digest(key), {})[fact.name] = msgspec.msgpack.encode(value)
        return value

    @functools.cached_property
    def _recorded(self) -> dict[bytes, dict[str, bytes]]:
        """By digest: the facts that an earlier run has stored."""
        kept = None if self._earlier is None else self._earlier.get_record(self._name)
        with contextlib.suppress(msgspec.MsgspecError, RecursionError):
            return {} if kept is None else _RECORD.decode(kept)
        return {}
