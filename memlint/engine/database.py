"""The folder beside a project in which earlier runs keep things, and the databases in it.

Nothing in them is executed, one that cannot be read is replaced, and one that cannot be used (a read-only folder, a
lock that is held) costs the time of an analysis and nothing else.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec

if TYPE_CHECKING:
    import sqlite3

R = TypeVar("R")

#: the folder that holds the cache of every project, in place of one in each project's root
VARIABLE = "MEMLINT_CACHE_DIR"
FOLDER = ".memlint_cache"
#: names in the folder; nothing else is ours
RESULTS, INDEXES = "results.sqlite", "indexes.sqlite"
_FILES = {
    "CACHEDIR.TAG": "Signature: 8a477f597d28d172789f06886806bc55\n# This folder is memlint's cache; see "
    "https://bford.info/cachedir/\n",
    ".gitignore": "# memlint made this\n*\n",
}
#: seconds that a lock of another process is waited for
_PATIENCE = 2.0


def folder_of(root: Path) -> Path:
    """The folder of the cache of the project at ``root``."""
    shared = os.environ.get(VARIABLE)
    if not shared:
        return root / FOLDER
    return Path(shared).absolute() / hashlib.blake2b(os.fsencode(root), digest_size=8).hexdigest()


class Database:
    """One database of a project's cache, of one table. ``remarks``: what the user may want to know of it."""

    def __init__(self, root: Path, name: str, table: str) -> None:
        """``table``: what makes the table, where there is none yet."""
        self._folder = folder_of(root)
        self._path = self._folder / name
        self._table = table
        self._open: sqlite3.Connection | None = None
        self.remarks: list[str] = []

    @property
    def exists(self) -> bool:
        """Whether an earlier run has made it."""
        return self._open is not None or self._path.is_file()

    def make(self) -> bool:
        """Whether there is a folder for it, which says of itself what it is; it is made where it is not there."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            for name, text in _FILES.items():
                if not (self._folder / name).exists():
                    (self._folder / name).write_text(text, encoding="utf-8")
        except OSError as error:
            self.remarks.append(f"no cache: {self._folder} cannot be written: {error.strerror}")
            return False
        return True

    def do(self, work: Callable[[sqlite3.Connection], R]) -> R | None:
        """Do something with the database. What goes wrong is a remark, and gives None; one that is broken goes, and
        whoever writes next makes another."""
        import sqlite3

        try:
            if self._open is None:
                # (one thread uses it at a time, but not always the same one)
                self._open = sqlite3.connect(
                    self._path, timeout=_PATIENCE, isolation_level=None, check_same_thread=False
                )
                self._open.execute(f"CREATE TABLE IF NOT EXISTS {self._table}")
            return work(self._open)
        except sqlite3.OperationalError as error:  # locked, read-only, a full disk
            self.remarks.append(f"the cache in {self._folder} was not used: {error}")
            self.close()
        except (sqlite3.DatabaseError, zlib.error, msgspec.MsgspecError) as error:
            self.remarks.append(f"the cache in {self._folder} was broken and is made anew: {error}")
            self.close()
            with contextlib.suppress(OSError):
                _remove(self._path)
        return None

    def close(self) -> None:
        """Let go of the file; it is opened again when it is needed."""
        if self._open is not None:
            self._open.close()
            self._open = None


def remove(root: Path) -> Path | None:
    """Remove the cache of the project at ``root``; the folder that was, None where there is none. Raises OSError.

    Only what memlint made there is removed, and the folder where nothing else is in it.
    """
    folder = folder_of(root)
    if not (folder / "CACHEDIR.TAG").is_file():
        return None
    for name in (RESULTS, INDEXES):
        _remove(folder / name)
    for name in _FILES:
        (folder / name).unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        folder.rmdir()
    return folder


def _remove(database: Path) -> None:
    for end in ("", "-journal", "-wal", "-shm"):
        database.with_name(database.name + end).unlink(missing_ok=True)
