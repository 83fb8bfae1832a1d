"""Files that lie beside others until they take their place. A run that is killed leaves them behind, and the next one
removes them: whoever writes one holds a lock on it, which goes with its process."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterable
from pathlib import Path

from memlint.patterns import lazy_pattern

#: the names of all of them
NAME = lazy_pattern(r"\.memlint-[0-9a-f]{12}\.(?:new|old)")
#: seconds after which one was left, where files cannot be locked
_OLD = 3600


class Temporary:
    """A new file beside another, open to be written. ``path``: where it is."""

    def __init__(self, target: Path, end: str = "new", token: str = "") -> None:
        """Raises OSError. ``token``: what it has in common with others of one replacement."""
        self.path = target.with_name(f".memlint-{token or new_token()}.{end}")
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
        self._handle = os.open(self.path, flags, 0o600)
        _lock(self._handle)

    def write(self, content: bytes) -> None:
        """Put all of it onto the disk."""
        with open(self._handle, "wb", closefd=os.name == "nt") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if os.name == "nt":  # there, what is open cannot take another's place
            self._handle = -1

    def close(self) -> None:
        """Let go of it; it is removed, unless it has taken its place or is to stay."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    def remove(self) -> None:
        """Close it, and remove it where it still is. Raises OSError."""
        try:
            self.path.unlink(missing_ok=True)
        finally:
            self.close()


def new_token() -> str:
    """What tells the temporary files of one replacement from all others."""
    return os.urandom(6).hex()


def sweep(paths: Iterable[Path]) -> list[Path]:
    """Remove those of some temporary files whose process is gone. What was removed; one that cannot be is left."""
    return [path for path in paths if NAME.fullmatch(path.name) and _is_left(path) and _unlinked(path)]


def beside(paths: Iterable[Path]) -> list[Path]:
    """The temporary files in the folders of some files."""
    found = []
    for folder in sorted({path.parent for path in paths}):
        try:
            with os.scandir(folder) as entries:
                found += [folder / entry.name for entry in entries if NAME.fullmatch(entry.name)]
        except OSError:
            continue
    return found


def _lock(handle: int) -> bool:
    """Whether a file is locked by this process now; True where there are no locks."""
    try:
        import fcntl
    except ImportError:
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _is_left(path: Path) -> bool:
    try:
        status = path.lstat()
        if not stat.S_ISREG(status.st_mode):
            return False
        if os.name == "nt":
            return time.time() - status.st_mtime > _OLD
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        return _lock(handle)
    finally:
        os.close(handle)


def _unlinked(path: Path) -> bool:
    try:
        path.unlink()
    except OSError:
        return False
    return True
