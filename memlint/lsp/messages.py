"""What the server and its worker say to each other: MessagePack, each message behind its length."""

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


class Lint(msgspec.Struct, frozen=True, tag=True):
    """Lint the file ``path`` (absolute). ``texts``: what open files hold, by absolute path; ``cwd``: what paths in the
    findings are relative to. ``fresh``: files may have come or gone since the last request; ``evidence``: files of
    what was measured in this session."""

    number: int
    path: str
    cwd: str
    texts: Mapping[str, bytes]
    overrides: Overrides = Overrides()
    fresh: bool = False
    evidence: tuple[str, ...] = ()


class Fix(msgspec.Struct, frozen=True, tag=True):
    """Make all safe fixes in one file, as if it were saved; the fields are those of `Lint`."""

    number: int
    path: str
    cwd: str
    texts: Mapping[str, bytes]
    overrides: Overrides = Overrides()


class Explain(msgspec.Struct, frozen=True, tag=True):
    """Say what is known of a place of one file: a line and column from 1, of a cell of a notebook. The other fields are
    those of `Lint`."""

    number: int
    path: str
    cwd: str
    texts: Mapping[str, bytes]
    line: int
    column: int
    cell: int | None = None
    overrides: Overrides = Overrides()


class Cancel(msgspec.Struct, frozen=True, tag=True):
    """Nobody waits for the answer to this request any more."""

    number: int


Request = Lint | Fix | Explain | Cancel


class Answer(msgspec.Struct, frozen=True):
    """The answer to a request. ``paths``: the absolute path of each file that the findings name. ``fixed``: what the
    file holds after all fixes, None where nothing changes; ``explained``: None where there is nothing to say.
    ``problems``: why the file was not checked, or not all of it; ``error``: what is wrong with the configuration;
    ``mistake``: a mistake of ours, with its traceback. ``cancelled``: there is no answer."""

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
