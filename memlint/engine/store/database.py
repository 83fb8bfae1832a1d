"""The folder beside a project in which earlier runs keep things, and the databases in it.

Nothing in them is executed, one that cannot be read is replaced, and one that cannot be used (a read-only folder, a
lock that is held) costs the time of an analysis and nothing else. One that is not ours (`ownership`) is left alone.
"""

from __future__ import annotations

import contextlib
import hashlib
import os.path
import threading
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec

from memlint.engine.store import ownership
from memlint.reading import read_text

if TYPE_CHECKING:
    import sqlite3

R = TypeVar("R")

#: the folder that holds the cache of every project, in place of one in each project's root
VARIABLE = "MEMLINT_CACHE_DIR"
FOLDER = ".memlint_cache"
#: names of memlint's files in the folder
RESULTS, INDEXES = "results.sqlite", "indexes.sqlite"
_FILES = {
    "CACHEDIR.TAG": "Signature: 8a477f597d28d172789f06886806bc55\n# This folder is memlint's cache; see "
    "https://bford.info/cachedir/\n",
    ".gitignore": "# memlint made this\n*\n",
}
#: the seconds to wait for a lock of another process
_PATIENCE = 2.0


def folder_of(root: Path) -> Path:
    """The folder of the cache of the project at ``root``."""
    shared = os.environ.get(VARIABLE)
    if not shared:
        return root / FOLDER
    return Path(shared).absolute() / hashlib.blake2b(os.fsencode(root), digest_size=8).hexdigest()


class Database:
    """One database of a project's cache, with one table. ``remarks``: messages for the user."""

    def __init__(self, root: Path, name: str, table: str) -> None:
        """``table``: the name and the columns of the table."""
        self._folder = folder_of(root)
        self._path = self._folder / name
        self._table = table
        self._open: sqlite3.Connection | None = None
        self.remarks: list[str] = []

    @property
    def exists(self) -> bool:
        """Whether the database exists."""
        return self._open is not None or os.path.lexists(self._path)

    def make(self) -> bool:
        """Create the folder, with a file that describes it; returns whether it exists."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            if not self._is_ours():
                return False
            for name, text in _FILES.items():
                if _is_cut_short(self._folder / name):  # left by a killed run
                    (self._folder / name).unlink(missing_ok=True)
                if not os.path.lexists(self._folder / name):
                    _create(self._folder / name, text)
        except OSError as error:
            self.remarks.append(f"no cache: {self._folder} cannot be written: {error.strerror}")
            return False
        return True

    def read(self, work: Callable[[sqlite3.Connection], R]) -> R | None:
        """As `write`, for reading."""
        return self._do(work, reads=True)

    def write(self, work: Callable[[sqlite3.Connection], R]) -> R | None:
        """Run ``work`` on the database. An error is recorded as a remark and returns None; a broken database is
        removed, and created again by the next write. A foreign one is neither used nor changed."""
        return self._do(work, reads=False)

    def _do(self, work: Callable[[sqlite3.Connection], R], *, reads: bool) -> R | None:
        import sqlite3

        try:
            if self._open is None and not self._connect():
                return None
            assert self._open is not None
            self._open.execute(f"PRAGMA query_only = {reads:d}")
            return work(self._open)
        except (sqlite3.OperationalError, OSError) as error:  # locked, read-only, a full disk, removed by another run
            self.remarks.append(f"the cache in {self._folder} was not used: {error}")
            self.close()
        except (sqlite3.DatabaseError, zlib.error, msgspec.MsgspecError, RecursionError, OverflowError) as error:
            self.remarks.append(f"the cache in {self._folder} was corrupt and is rebuilt: {error}")
            self.close()
            with contextlib.suppress(OSError):
                _remove(self._path)
        return None

    def _is_ours(self) -> bool:
        why = ownership.of_folder(self._folder) or ownership.of_database(self._path)
        if why is not None:
            self.remarks.append(f"no cache: {self._folder} is neither used nor changed: {why}")
        return why is None

    def _connect(self) -> bool:
        """Open the database if it is memlint's: its schema is checked before anything in it is used."""
        import sqlite3

        with _OPENING:
            if not self._is_ours():
                return False
            if self._path not in _OURS:  # in this process: our own lock does not block us
                left = ownership.left_by_others(self._path, _PATIENCE)
                if left is None:
                    self.remarks.append(f"the cache in {self._folder} was not used: another run is writing it")
                    return False
                if left:  # from a killed run or a stranger; SQLite would apply it
                    _remove(self._path)
            if not os.path.lexists(self._path):
                _create(self._path, "")
            # one thread uses it at a time, but not always the same one
            opened = sqlite3.connect(
                f"{self._path.absolute().as_uri()}?mode=rw",
                uri=True,
                timeout=_PATIENCE,
                isolation_level=None,
                check_same_thread=False,
            )
            try:
                for pragma in ("trusted_schema = OFF", "cell_size_check = ON", "mmap_size = 0", "temp_store = MEMORY"):
                    opened.execute(f"PRAGMA {pragma}")
                opened.text_factory = bytes
                name = self._table.split()[0]
                rows = opened.execute("SELECT type, name, sql FROM sqlite_master ORDER BY type LIMIT 4").fetchall()
                if not rows:
                    opened.execute(f"CREATE TABLE IF NOT EXISTS {self._table}")  # a run beside this one may be faster
                elif rows != [
                    (b"index", f"sqlite_autoindex_{name}_1".encode(), None),
                    (b"table", name.encode(), f"CREATE TABLE {self._table}".encode()),
                ]:
                    self.remarks.append(
                        f"no cache: {self._folder} is neither used nor changed: {self._path.name} holds something else"
                    )
                    opened.close()
                    return False
            except BaseException:
                opened.close()
                raise
            self._open = opened
            _OURS[self._path] = _OURS.get(self._path, 0) + 1
            return True

    def close(self) -> None:
        """Close the file; it is opened again when needed."""
        if self._open is not None:
            with _OPENING:
                self._open.close()
                self._open = None
                _OURS[self._path] -= 1
                if not _OURS[self._path]:
                    del _OURS[self._path]


#: the open databases of this process, with their number of uses
_OURS: dict[Path, int] = {}
_OPENING = threading.Lock()


def inflated(packed: bytes, most: int) -> bytes:
    """The decompressed bytes, at most ``most``. Raises zlib.error if there are more, or for invalid data."""
    stream = zlib.decompressobj()
    content = stream.decompress(packed, most)
    if not stream.eof or stream.unused_data:
        raise zlib.error("an entry is larger than any that is kept, or incomplete")
    return content


def remove(root: Path) -> tuple[Path | None, list[str]]:
    """Remove the cache of the project at ``root``. Returns its folder, None if there is none of memlint's, and what was
    left with the reasons. Raises OSError. Only files of memlint are removed, never through a link, and the folder if
    nothing else is in it."""
    folder = folder_of(root)
    if not os.path.lexists(folder):
        return None, []
    if (why := ownership.of_folder(folder)) is not None:
        return None, [f"{folder} was left: {why}"]
    if not _is_as_written(folder / "CACHEDIR.TAG"):
        return None, []
    left = []
    for name in (RESULTS, INDEXES):
        if (why := ownership.of_database(folder / name)) is not None:
            left.append(f"{folder / name} was left: {why}")
        else:
            _remove(folder / name)
    for name in _FILES:
        if _is_as_written(folder / name):
            (folder / name).unlink()
    with contextlib.suppress(OSError):
        folder.rmdir()
    return folder, left


def _is_as_written(file: Path) -> bool:
    """Whether a file that describes the folder is as memlint wrote it."""
    try:
        return ownership.of_file(file) is None and read_text(file) == _FILES[file.name]
    except OSError:
        return False


def _is_cut_short(file: Path) -> bool:
    """Whether such a file contains only the beginning of its text."""
    try:
        text = "" if ownership.of_file(file) is not None else read_text(file)
    except OSError:
        return False
    return text != _FILES[file.name] and _FILES[file.name].startswith(text) and file.is_file() and not file.is_symlink()


def _create(file: Path, text: str) -> None:
    """Create a file, unless a run beside this one was faster; nothing is written through a link."""
    with contextlib.suppress(FileExistsError), file.open("x", encoding="utf-8", newline="") as out:
        out.write(text)


def _remove(database: Path) -> None:
    for file in (database, *ownership.sides(database)):
        file.unlink(missing_ok=True)
