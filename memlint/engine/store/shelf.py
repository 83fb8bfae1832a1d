"""The indexes of files, kept beside the project: a file is read as a program once, however often it changes hands.

They are kept by content, whatever the file is called, so that an edit, a branch or another configuration costs the
files that changed.
"""

from __future__ import annotations

import hashlib
import time
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

from memlint.engine.store.cache import Key
from memlint.engine.store.database import INDEXES, Database, inflated

if TYPE_CHECKING:
    import sqlite3

_TABLE = "shelf (key BLOB PRIMARY KEY, used INTEGER, size INTEGER, value BLOB)"
#: the most bytes in all; the least recently used ones are removed first
MAX_BYTES = 64 * 2**20
#: the most bytes of one index
MAX_INDEX = 32 << 20
#: how many are written at once, so that parallel processes can use them
_AT_ONCE = 256
#: seconds after which the time of use is updated
_FRESH = 24 * 3600


class Shelf:
    """The results of earlier runs for files. ``remarks``: messages for the user. If the database cannot be used,
    nothing is found or stored, and no second attempt is made."""

    def __init__(self, root: Path) -> None:
        self._database = Database(root, INDEXES, _TABLE)
        self.remarks = self._database.remarks
        self._salt = Key().digest()
        self._now = int(time.time())
        self._new: list[tuple[bytes, int, int, bytes]] = []
        self._still_used: list[bytes] = []

    def get(self, digest: bytes) -> bytes | None:
        """The stored result for a file with this digest; None if there is none."""
        return self._get(self._hash(digest, b""))

    def get_record(self, name: str) -> bytes | None:
        """The stored result for all files together; None if there is none."""
        return self._get(self._key_of_record(name))

    def _get(self, key: bytes) -> bytes | None:
        if self.remarks or not self._database.exists:
            return None

        def look(database: sqlite3.Connection) -> bytes | None:
            row = database.execute(
                "SELECT used, value FROM shelf WHERE key = ? AND typeof(used) = 'integer' AND typeof(value) = 'blob' "
                "AND length(value) <= ?",
                (key, MAX_INDEX),
            ).fetchone()
            if row is None:
                return None
            if row[0] < self._now - _FRESH:
                self._still_used.append(key)
            return inflated(row[1], MAX_INDEX)

        return self._database.read(look)

    def put(self, digest: bytes, value: bytes) -> None:
        """Store the result for a file with this digest."""
        self._put(self._hash(digest, b""), value)

    def put_record(self, name: str, value: bytes) -> None:
        """Store the result for all files together, replacing the previous one."""
        self._put(self._key_of_record(name), value)

    def _put(self, key: bytes, value: bytes) -> None:
        if len(value) > MAX_INDEX:
            return
        packed = zlib.compress(value, 1)
        self._new.append((key, self._now, len(packed), packed))
        if len(self._new) >= _AT_ONCE:
            self._write()

    def close(self) -> None:
        """Write pending results, and remove those beyond the bounds."""
        if self._new or self._still_used:
            self._write(last=True)
        self._database.close()

    def _write(self, last: bool = False) -> None:
        new, used = self._new, self._still_used if last else []
        self._new = []
        if self.remarks or not self._database.make():
            return

        def keep(database: sqlite3.Connection) -> None:
            database.execute("BEGIN IMMEDIATE")
            database.executemany("INSERT OR REPLACE INTO shelf (key, used, size, value) VALUES (?, ?, ?, ?)", new)
            database.executemany("UPDATE shelf SET used = ? WHERE key = ?", [(self._now, key) for key in used])
            if last:
                _bound(database)
            database.execute("COMMIT")

        self._database.write(keep)

    def _key_of_record(self, name: str) -> bytes:
        return self._hash(name.encode("utf-8", "surrogateescape"), b"record")

    def _hash(self, raw: bytes, kind: bytes) -> bytes:
        return hashlib.blake2b(raw, digest_size=16, key=self._salt, person=kind).digest()


def _bound(database: sqlite3.Connection) -> None:
    total = database.execute("SELECT TOTAL(length(value)) FROM shelf").fetchone()[0]
    if total <= MAX_BYTES:
        return
    for key, size in database.execute("SELECT rowid, length(value) FROM shelf ORDER BY used, key").fetchall():
        database.execute("DELETE FROM shelf WHERE rowid = ?", (key,))
        total -= size or 0
        if total <= MAX_BYTES // 2:  # so that not every run has to do it
            return
