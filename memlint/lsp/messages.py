"""Messages between server and worker: MessagePack, each with its length before it."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import BinaryIO, TypeVar

import msgspec

from memlint.engine.rules.selection import Overrides
from memlint.explanation import Explanation
from memlint.finding import Finding

_HEAD = struct.Struct("<Q")
T = TypeVar("T")


class _OneFile(msgspec.Struct, frozen=True, tag=True):
    """A request about the file ``path`` (absolute). ``texts``: the contents of open files, by absolute path; ``cwd``:
    the folder that paths in the findings are relative to."""

    number: int
    path: str
    cwd: str
    texts: Mapping[str, bytes]
    overrides: Overrides = Overrides()


class Lint(_OneFile, frozen=True):
    """Lint the file. ``fresh``: files may have been added or removed since the last request; ``evidence``: files of
    evidence from this session; ``quick``: the answer may be a partial one."""

    fresh: bool = False
    quick: bool = False
    evidence: tuple[str, ...] = ()


class Fix(_OneFile, frozen=True):
    """Apply all safe fixes in the file, as if it were saved."""


class Explain(_OneFile, frozen=True, kw_only=True):
    """Explain a position of the file: a line and column from 1, in a cell for a notebook."""

    line: int
    column: int
    cell: int | None = None


class Cancel(msgspec.Struct, frozen=True, tag=True):
    """The answer to this request is no longer needed."""

    number: int


Request = Lint | Fix | Explain | Cancel


class Answer(msgspec.Struct, frozen=True):
    """The answer to a request. ``paths``: the absolute path of each file in the findings. ``fixed``: the file's content
    after all fixes, None if unchanged; ``explained``: None if there is nothing to show. ``problems``: why the file was
    not checked completely; ``error``: an error in the configuration; ``mistake``: an internal error with its traceback.
    ``cancelled``: there is no answer. ``partial``: only the functions that have been edited were analysed; the other
    findings are earlier ones."""

    number: int
    findings: tuple[Finding, ...] = ()
    paths: Mapping[str, str] = {}
    fixed: bytes | None = None
    explained: Explanation | None = None
    problems: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()
    error: str = ""
    mistake: str = ""
    cancelled: bool = False
    partial: bool = False


REQUESTS: msgspec.msgpack.Decoder[Request] = msgspec.msgpack.Decoder(Request)
ANSWERS = msgspec.msgpack.Decoder(Answer)


def write(stream: BinaryIO, message: msgspec.Struct) -> None:
    """Write a message."""
    content = msgspec.msgpack.encode(message)
    stream.write(_HEAD.pack(len(content)) + content)
    stream.flush()


def read(stream: BinaryIO, decoder: msgspec.msgpack.Decoder[T]) -> T | None:
    """The next message; None at the end of the stream."""
    head = stream.read(_HEAD.size)
    if len(head) < _HEAD.size:
        return None
    (length,) = _HEAD.unpack(head)
    content = stream.read(length)
    return decoder.decode(content) if len(content) == length else None
