"""Results of earlier runs, kept beside the project: whoever lints the same contents again waits for no analysis.

An entry is what one project's linted files say, under a hash of all that it was made from: every file of the project,
the configuration, the rules, memlint itself and the Python that it runs on. Nothing in it is executed, a file that
cannot be read as a cache is replaced, and a cache that cannot be used (a read-only folder, a lock that is held) costs
the time of an analysis and nothing else.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

if TYPE_CHECKING:
    import sqlite3

T = TypeVar("T")
R = TypeVar("R")

#: the folder that holds the cache of every project, in place of one in each project's root
VARIABLE = "MEMLINT_CACHE_DIR"
FOLDER = ".memlint_cache"
#: names in the folder; nothing else is ours
_DATABASE = "results.sqlite"
_FILES = {
    "CACHEDIR.TAG": "Signature: 8a477f597d28d172789f06886806bc55\n# This folder is memlint's cache; see "
    "https://bford.info/cachedir/\n",
    ".gitignore": "# memlint made this\n*\n",
}
#: raised whenever the meaning of an entry changes
_FORMAT = 1
#: what the entries take in all, in bytes, and how many there are: the least recently used ones go first
MAX_BYTES, MAX_ENTRIES = 64 * 2**20, 1000
#: seconds that a lock of another process is waited for
_PATIENCE = 2.0


def folder_of(root: Path) -> Path:
    """The folder of the cache of the project at ``root``."""
    shared = os.environ.get(VARIABLE)
    if not shared:
        return root / FOLDER
    return Path(shared).absolute() / hashlib.blake2b(os.fsencode(root), digest_size=8).hexdigest()


class Cache(Generic[T]):
    """The entries of one project. ``kind``: what they hold. ``remarks``: what the user may want to know of it."""

    def __init__(self, root: Path, kind: type[T]) -> None:
        self._folder = folder_of(root)
        self._decoder = msgspec.msgpack.Decoder(kind)
        self.remarks: list[str] = []

    def get(self, key: bytes) -> T | None:
        """The entry with a key; None where there is none that can be read."""
        if not (self._folder / _DATABASE).is_file():
            return None

        def look(database: sqlite3.Connection) -> T | None:
            row = database.execute("SELECT value FROM entries WHERE key = ?", (key,)).fetchone()
            if row is None:
                return None
            entry = self._decoder.decode(zlib.decompress(row[0]))
            with contextlib.suppress(Exception):  # a folder that is only read serves all the same
                database.execute("UPDATE entries SET used = ? WHERE key = ?", (time.time_ns(), key))
            return entry

        return self._with_database(look)

    def put(self, key: bytes, entry: T) -> None:
        """Keep an entry, and drop the least recently used ones beyond the bounds."""
        value = zlib.compress(msgspec.msgpack.encode(entry), 1)
        if len(value) > MAX_BYTES // 4 or not self._made():
            return

        def keep(database: sqlite3.Connection) -> None:
            database.execute("BEGIN IMMEDIATE")
            row = (key, time.time_ns(), len(value), value)
            database.execute("INSERT OR REPLACE INTO entries (key, used, size, value) VALUES (?, ?, ?, ?)", row)
            total = 0
            rows = database.execute("SELECT key, size FROM entries ORDER BY used DESC").fetchall()
            for number, (old, size) in enumerate(rows):
                total += size
                if total > MAX_BYTES or number >= MAX_ENTRIES:
                    database.execute("DELETE FROM entries WHERE key = ?", (old,))
            database.execute("COMMIT")

        self._with_database(keep)

    def _made(self) -> bool:
        """Whether there is a folder, which says of itself what it is."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            for name, text in _FILES.items():
                if not (self._folder / name).exists():
                    (self._folder / name).write_text(text, encoding="utf-8")
        except OSError as error:
            self.remarks.append(f"no cache: {self._folder} cannot be written: {error.strerror}")
            return False
        return True

    def _with_database(self, work: Callable[[sqlite3.Connection], R]) -> R | None:
        """Do something with the database. What goes wrong is a remark; one that is broken goes, and the next run makes
        another."""
        import sqlite3

        database = None
        try:
            database = sqlite3.connect(self._folder / _DATABASE, timeout=_PATIENCE, isolation_level=None)
            database.execute(
                "CREATE TABLE IF NOT EXISTS entries (key BLOB PRIMARY KEY, used INTEGER, size INTEGER, value BLOB)"
            )
            return work(database)
        except sqlite3.OperationalError as error:  # locked, read-only, a full disk
            self.remarks.append(f"the cache in {self._folder} was not used: {error}")
        except (sqlite3.DatabaseError, zlib.error, msgspec.MsgspecError) as error:
            self.remarks.append(f"the cache in {self._folder} was broken and is made anew: {error}")
            with contextlib.suppress(OSError):
                _remove_database(self._folder)
        finally:
            if database is not None:
                database.close()
        return None


def remove(root: Path) -> Path | None:
    """Remove the cache of the project at ``root``; the folder that was, None where there is none. Raises OSError.

    Only what memlint made there is removed, and the folder where nothing else is in it.
    """
    folder = folder_of(root)
    if not (folder / "CACHEDIR.TAG").is_file():
        return None
    _remove_database(folder)
    for name in _FILES:
        (folder / name).unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        folder.rmdir()
    return folder


def _remove_database(folder: Path) -> None:
    for end in ("", "-journal", "-wal", "-shm"):
        (folder / (_DATABASE + end)).unlink(missing_ok=True)


class Key:
    """A hash of all that an entry is made from."""

    def __init__(self) -> None:
        self._hash = hashlib.blake2b(digest_size=20)
        self.add((_FORMAT, tuple(sys.version_info), sys.platform, *ourselves()))

    def add(self, part: Any) -> None:
        """Take structs, sets, paths and plain values into account; the order of sets and tables plays no part."""
        encoded = msgspec.json.encode(part, enc_hook=_plain, order="deterministic")
        self._hash.update(len(encoded).to_bytes(8, "little"))
        self._hash.update(encoded)

    def add_content(self, name: str, content: bytes | None) -> None:
        """Take a file into account; None: it cannot be read."""
        self.add((name, None if content is None else len(content)))
        self._hash.update(content or b"")

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
    yield from files_below(Path(__file__).resolve().parent.parent)


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
