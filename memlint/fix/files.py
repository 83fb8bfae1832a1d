"""Encoding of edited text, and writing of files without loss."""

from __future__ import annotations

import contextlib
import os
import signal
import stat
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from memlint.fix.spans import EditError
from memlint.project import decode, encoding_of
from memlint.reading import leads_out, most_of, read_file
from memlint.temporary import Temporary, new_token


class Change(msgspec.Struct, frozen=True):
    """A file (absolute path) whose content changes from ``before`` to ``after``."""

    path: Path
    display: str
    before: bytes
    after: bytes


class WriteError(Exception):
    """Why files were not written, a clause; all of them are unchanged."""

    def __init__(self, change: Change, reason: str) -> None:
        super().__init__(f"{change.display}: {reason}")
        self.change, self.reason = change, reason


def encode(before: bytes, text: str) -> bytes:
    """``text`` as bytes, with the declared encoding and the BOM of the file that held ``before``. Raises EditError if
    that encoding cannot represent the text or would not be detected in it."""
    try:
        encoding = encoding_of(before)
        same = before.decode(encoding).encode(encoding) == before
    except (SyntaxError, LookupError, UnicodeError):  # it was readable before
        raise EditError("it has changed since it was read") from None
    if not same:
        raise EditError(f"{encoding} does not write the file back as it is")
    try:
        after = text.encode(encoding)
    except UnicodeEncodeError as error:
        raise EditError(f"{encoding} has no {error.object[error.start]!r}, which it would write") from None
    try:
        same = decode(after) == text
    except (SyntaxError, LookupError, UnicodeError):
        same = False
    if not same:
        raise EditError("the declared encoding would no longer be read")
    return after


def obstacle(path: Path, root: Path) -> str | None:
    """Why a file of the project at ``root`` cannot be replaced, a clause, or None. A file without write permission is
    left alone even by the superuser, and one that a link leads to outside the project by everybody."""
    try:
        target = path.resolve(strict=True)
        mode, folder = target.stat().st_mode, target.parent.stat().st_mode
    except (OSError, RuntimeError) as error:
        return _said(error)
    if not stat.S_ISREG(mode):
        return "it is no regular file"
    if leads_out(target, root):
        return f"it is a link to {target}, out of the project"
    if not mode & 0o222 or not os.access(target, os.W_OK):
        return "the file is read-only"
    if not folder & 0o222 or not os.access(target.parent, os.W_OK | os.X_OK):
        return f"its folder {target.parent} is read-only"
    return None


class _Staged(msgspec.Struct, frozen=True):
    """``target``: the file itself, with links resolved. ``backup``: the file with the old content, for a rollback."""

    change: Change
    target: Path
    content: Temporary
    backup: Temporary | None


def write(changes: Sequence[Change]) -> None:
    """Write files that belong together: all of them or none. Each is replaced atomically, and links to it stay links.
    Raises WriteError; on that, and on any other exception, no file has changed and no temporary file is left. Ctrl-C is
    deferred."""
    staged: list[_Staged] = []
    with _interrupts_wait():
        try:
            for change in changes:
                try:
                    _stage(change, staged, with_backup=len(changes) > 1)
                except (OSError, RuntimeError) as error:
                    raise WriteError(change, _said(error)) from None
            _replace(staged)
        finally:
            for one in staged:
                for leftover in (one.content, one.backup):
                    if leftover is not None:
                        with contextlib.suppress(OSError):
                            leftover.remove()


@contextlib.contextmanager
def _interrupts_wait() -> Iterator[None]:
    """Defer Ctrl-C to the end of the block, so that it cannot leave some files written and others not."""
    before = signal.getsignal(signal.SIGINT)
    if before is None or threading.current_thread() is not threading.main_thread():  # another handler, or thread
        yield
        return
    came: list[int] = []
    signal.signal(signal.SIGINT, lambda number, frame: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if came:
            signal.raise_signal(signal.SIGINT)


def is_written(change: Change) -> bool:
    """Whether the file has the new content."""
    try:
        return read_file(change.path, most_of(change.path)) == change.after
    except OSError:
        return False


def _stage(change: Change, staged: list[_Staged], *, with_backup: bool) -> None:
    target = change.path.resolve(strict=True)
    if read_file(target, most_of(target)) == change.after:
        return  # the same file under another name
    _compare(change, target)
    status, token = target.stat(), new_token()
    content = Temporary(target, "new", token)
    try:
        backup = Temporary(target, "old", token) if with_backup else None
    except BaseException:
        content.remove()
        raise
    staged.append(_Staged(change, target, content, backup))  # first, to be removed in any case
    _write_new(content, change.after, status)
    if backup is not None:
        _write_new(backup, change.before, status)


def _compare(change: Change, target: Path) -> None:
    if read_file(target, most_of(target)) != change.before:
        raise WriteError(change, "it has changed since it was read")


def _write_new(file: Temporary, content: bytes, like: os.stat_result) -> None:
    """Write a new file, with the owner and the mode of another; it is on the disk on return."""
    file.write(content)
    path = file.path
    status = path.stat()
    if (status.st_uid, status.st_gid) != (like.st_uid, like.st_gid) and hasattr(os, "chown"):
        with contextlib.suppress(OSError):  # only the superuser may change the owner
            os.chown(path, like.st_uid, like.st_gid)
    path.chmod(stat.S_IMODE(like.st_mode))


def _replace(staged: list[_Staged]) -> None:
    begun: list[_Staged] = []
    try:
        for one in staged:
            try:
                _compare(one.change, one.target)
                begun.append(one)
                one.content.path.replace(one.target)
            except OSError as error:
                raise WriteError(one.change, _said(error)) from None
    except BaseException:
        for one in begun:
            if one.backup is None or one.content.path.exists():
                continue
            try:
                one.backup.path.replace(one.target)
            except OSError as error:
                staged.remove(one)  # its content must not be deleted
                kept = _set_aside(one.backup, one.target)
                raise WriteError(one.change, f"{_said(error)}; what it held before is in {kept}") from None
        raise


def _set_aside(backup: Temporary, target: Path) -> Path:
    """Move a backup to a permanent name, which the next run does not clean up; returns the name."""
    kept = target.with_name(f"{target.name}{backup.path.name}")
    backup.close()
    try:
        return backup.path.replace(kept)
    except OSError:
        return backup.path


def _said(error: Exception) -> str:
    text = (error.strerror if isinstance(error, OSError) else None) or str(error)
    return text[:1].lower() + text[1:]
