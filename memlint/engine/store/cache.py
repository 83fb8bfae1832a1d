"""Results of earlier runs, kept beside the project: whoever lints the same contents again waits for no analysis.

An entry is what one project's linted files say, under a hash of all that it was made from: every file of the project,
the configuration, the rules, memlint itself and the Python that it runs on.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from memlint.engine.store.database import RESULTS, Database, inflated

if TYPE_CHECKING:
    import sqlite3

T = TypeVar("T")

#: incremented whenever the meaning of an entry changes
_FORMAT = 1
_TABLE = "entries (key BLOB PRIMARY KEY, used INTEGER, size INTEGER, value BLOB)"
#: the most bytes and entries; the least recently used ones are removed first
MAX_BYTES, MAX_ENTRIES = 64 * 2**20, 1000
#: the bytes of the largest entry, before it is compressed
MAX_ENTRY = 128 << 20


class Cache(Generic[T]):
    """The entries of one project. ``kind``: their type. ``remarks``: messages for the user."""

    def __init__(self, root: Path, kind: type[T]) -> None:
        self._database = Database(root, RESULTS, _TABLE)
        self._decoder = msgspec.msgpack.Decoder(kind)
        self.remarks = self._database.remarks

    def get(self, key: bytes) -> T | None:
        """The entry with a key; None if there is none that can be read."""
        if not self._database.exists:
            return None

        def look(database: sqlite3.Connection) -> T | None:
            row = database.execute(
                "SELECT value FROM entries WHERE key = ? AND typeof(value) = 'blob' AND length(value) <= ?",
                (key, MAX_BYTES // 4),
            ).fetchone()
            return None if row is None else self._decoder.decode(inflated(row[0], MAX_ENTRY))

        def note(database: sqlite3.Connection) -> None:
            with contextlib.suppress(Exception):  # a read-only folder can still be used
                database.execute("UPDATE entries SET used = ? WHERE key = ?", (time.time_ns(), key))

        found = self._database.read(look)
        if found is not None:
            self._database.write(note)
        self._database.close()
        return found

    def put(self, key: bytes, entry: T) -> None:
        """Store an entry, and remove the least recently used ones beyond the bounds."""
        content = msgspec.msgpack.encode(entry)
        value = zlib.compress(content, 1)
        if len(content) > MAX_ENTRY or len(value) > MAX_BYTES // 4 or not self._database.make():
            return

        def keep(database: sqlite3.Connection) -> None:
            database.execute("BEGIN IMMEDIATE")
            row = (key, time.time_ns(), len(value), value)
            database.execute("INSERT OR REPLACE INTO entries (key, used, size, value) VALUES (?, ?, ?, ?)", row)
            total = 0
            rows = database.execute("SELECT rowid, length(value) FROM entries ORDER BY used DESC").fetchall()
            for number, (old, size) in enumerate(rows):
                total += size or 0
                if total > MAX_BYTES or number >= MAX_ENTRIES:
                    database.execute("DELETE FROM entries WHERE rowid = ?", (old,))
            database.execute("COMMIT")

        self._database.write(keep)
        self._database.close()


class Key:
    """A hash of everything that an entry is made from."""

    def __init__(self) -> None:
        self._hash = hashlib.blake2b(digest_size=20)
        self.add((_FORMAT, tuple(sys.version_info), sys.platform, *ourselves()))

    def add(self, part: Any) -> None:
        """Add structs, sets, paths and plain values; the order of sets and tables does not matter."""
        encoded = msgspec.json.encode(part, enc_hook=_plain, order="deterministic")
        self._hash.update(len(encoded).to_bytes(8, "little"))
        self._hash.update(encoded)

    def digest(self) -> bytes:
        """The key."""
        return self._hash.digest()


def _plain(value: Any) -> Any:
    if isinstance(value, Path):
        return os.fspath(value).encode("utf-8", "surrogateescape").decode("latin-1")
    if isinstance(value, str):  # a word of the command line
        return str(value)
    raise NotImplementedError(type(value))


def ourselves() -> Iterator[tuple[str, int, int]]:
    """Memlint's own files: name, size and time of the last change."""
    yield from files_below(Path(__file__).resolve().parents[2])


def files_below(folder: Path) -> Iterator[tuple[str, int, int]]:
    """The code, knowledge and pages in a folder, in order: name, size, nanoseconds of the last change."""
    todo, found = [str(folder)], []
    while todo:
        with contextlib.suppress(OSError), os.scandir(todo.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    if entry.name != "__pycache__":
                        todo.append(entry.path)
                elif entry.name.endswith((".py", ".toml")):
                    status = entry.stat()
                    found.append((entry.path, status.st_size, status.st_mtime_ns))
    yield from sorted(found)
