"""Whether files in a cache are ours to open: a cache may have come with a stranger's project.

SQLite follows links, waits for pipes, and obeys a journal that lies beside a database: one may name any file to be
deleted.
"""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path

#: the most bytes of a database that is opened, four times what it stores
MAX_FILE = 256 << 20
_SIDES = ("-journal", "-wal", "-shm")
#: SQLite's lock of the writing process, a byte of the database file
_RESERVED = 0x40000001


def of_folder(folder: Path) -> str | None:
    """Why a folder must not be used, a clause; None if it may, or does not exist."""
    try:
        status = folder.lstat()
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        return f"it cannot be looked at: {error}"
    if not stat.S_ISDIR(status.st_mode):
        return "it is a link" if stat.S_ISLNK(status.st_mode) else "it is no folder"
    return _owner(status)


def of_file(file: Path) -> str | None:
    """Why a file must not be used, a clause; None if it may, or does not exist."""
    try:
        status = file.lstat()
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        return f"{file.name} cannot be looked at: {error}"
    if not stat.S_ISREG(status.st_mode):
        return f"{file.name} is {'a link' if stat.S_ISLNK(status.st_mode) else 'no regular file'}"
    if status.st_nlink > 1:
        return f"{file.name} has another name as well"
    if status.st_size > MAX_FILE:
        return f"{file.name} is larger than {MAX_FILE >> 20} MiB"
    return _owner(status)


def of_database(file: Path) -> str | None:
    """As `of_file`, for a database and the files beside it."""
    return next((why for one in (file, *sides(file)) if (why := of_file(one)) is not None), None)


def sides(database: Path) -> list[Path]:
    """The files that SQLite may leave beside a database."""
    return [database.with_name(database.name + end) for end in _SIDES]


def left_by_others(database: Path, patience: float) -> bool | None:
    """Whether there are journals beside a database that no process is writing, from a killed run or a stranger. None:
    one is still being written after ``patience`` seconds."""
    end = time.monotonic() + patience
    while _has_sides(database):
        if not _is_written(database) and _has_sides(database):  # a process may have ended its work in between
            return True
        if time.monotonic() > end:
            return None
        time.sleep(0.02)
    return False


def _has_sides(database: Path) -> bool:
    return any(os.path.lexists(side) for side in sides(database))


def _owner(status: os.stat_result) -> str | None:
    return None if not hasattr(os, "geteuid") or status.st_uid == os.geteuid() else "it belongs to another user"


def _is_written(database: Path) -> bool:
    """Whether a process holds the write lock of a database. (On systems without such locks, an open file cannot be
    removed.)"""
    try:
        import fcntl
    except ImportError:
        return False
    try:
        handle = os.open(database, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _RESERVED)
    except OSError:
        return True
    finally:
        os.close(handle)
    return False
