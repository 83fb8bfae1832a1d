"""Reading files that a stranger may have put where memlint looks: regular ones up to a size, and nothing else.

A pipe would be waited for, a device never ends, and a file of many gigabytes takes all memory.
"""

from __future__ import annotations

import errno
import os
import stat

#: the largest files that are read, in bytes: Python sources; notebooks (which hold pictures) and evidence; what
#: configures or describes a project
MAX_SOURCE, MAX_DATA, MAX_SETTINGS = 16 << 20, 64 << 20, 1 << 20
_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
#: that nothing is waited for, should the file have become a pipe meanwhile
_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0)


def most_of(path: str | os.PathLike[str]) -> int:
    """The largest program of a name that is read, in bytes."""
    return MAX_DATA if os.fspath(path).endswith(".ipynb") else MAX_SOURCE


def read_file(path: str | os.PathLike[str], most: int) -> bytes:
    """The bytes of a regular file of at most ``most`` bytes. Raises OSError, with the reason in its ``strerror``."""
    try:
        _check(os.stat(path), path, most)  # before it is opened: that alone makes some devices do something
        handle = os.open(path, _FLAGS)
    except ValueError:
        raise OSError(errno.EINVAL, "the name holds a null byte") from None
    with open(handle, "rb") as file:
        _check(os.fstat(handle), path, most)
        content = file.read(most + 1)
    if len(content) > most:
        raise _refused(errno.EFBIG, _too_large(most), path)
    return content


def refusal(path: str | os.PathLike[str], most: int) -> str | None:
    """Why `read_file` would not read what is there, a clause; None where it would."""
    try:
        _check(os.stat(path), path, most)
    except ValueError:
        return "the name holds a null byte"
    except OSError as error:
        return error.strerror or str(error)
    return None


def read_text(path: str | os.PathLike[str], most: int = MAX_SETTINGS) -> str:
    """As `read_file`, decoded as UTF-8; a byte that is none becomes a question mark."""
    return read_file(path, most).decode("utf-8-sig", "replace").replace("\r\n", "\n").replace("\r", "\n")


def read_inside(name: str, root: str | os.PathLike[str]) -> str:
    """As `read_text`, of a file in a folder; "" where there is none that can be read, or where a link leads out of the
    folder."""
    path = os.path.join(root, name)
    try:
        return "" if leads_out(path, root) else read_text(path)
    except OSError:
        return ""


def leads_out(path: str | os.PathLike[str], root: str | os.PathLike[str]) -> bool:
    """Whether a path, links followed, lies outside of a folder."""
    try:
        real, top = os.path.realpath(path), os.path.realpath(root)
    except ValueError:  # a null byte
        return True
    return real != top and not real.startswith(os.path.join(top, ""))


def _check(status: os.stat_result, path: str | os.PathLike[str], most: int) -> None:
    if not stat.S_ISREG(status.st_mode):
        kind = _KINDS.get(stat.S_IFMT(status.st_mode), "something else")
        raise _refused(errno.EINVAL, f"it is {kind} and no regular file", path)
    if status.st_size > most:
        raise _refused(errno.EFBIG, _too_large(most), path)


def _too_large(most: int) -> str:
    return f"it is larger than {most >> 20} MiB" if most >= 1 << 20 else f"it is larger than {most} bytes"


def _refused(number: int, reason: str, path: str | os.PathLike[str]) -> OSError:
    return OSError(number, reason, os.fspath(path))
