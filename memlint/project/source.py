"""The text of one file, read when it is first asked for."""

from __future__ import annotations

import codecs
import contextlib
import functools
import hashlib
import io
import os
import time
import tokenize
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from memlint.patterns import lazy_pattern
from memlint.project.cells import Cell, CellProblem, NotebookError, cell_at, read_notebook
from memlint.project.ipython import Mask, masks_of, python_of_export
from memlint.project.listing import is_notebook
from memlint.project.old_syntax import modern
from memlint.reading import most_of, read_file


class Source(msgspec.Struct, frozen=True):
    """One Python file. ``path`` is absolute, ``display`` what messages call it.

    ``text`` is decoded by the declared encoding, without a BOM and with its newlines as they are; it is empty
    where the file cannot be read, and ``unreadable`` says why. ``linted``: findings are reported on it
    (the other files of a project are context). ``rewritten``: the file is in an older grammar, and ``text`` is what
    says the same today (see `old_syntax`). ``packed``: the text as it is kept (see `pack`). ``masks``: what the file
    holds where ``text`` holds something else, since only IPython runs it.

    The text of a notebook is the module made of its ``cells``; ``problems`` says what is wrong with single ones, and
    ``foreign`` in which language it is, where that is not Python.
    """

    path: Path
    display: str
    packed: str | bytes
    linted: bool
    unreadable: str | None = None
    rewritten: bool = False
    masks: tuple[Mask, ...] = ()
    cells: tuple[Cell, ...] = ()
    problems: tuple[CellProblem, ...] = ()
    foreign: str = ""

    @property
    def text(self) -> str:
        kept = self.packed
        return kept if isinstance(kept, str) else _unpacked(kept)

    @property
    def original(self) -> str:
        """The text without its masks, each character at its place."""
        text, parts, at = self.text, [], 0
        for mask in self.masks:
            parts += [text[at : mask.start], mask.text]
            at = mask.start + len(mask.text)
        return "".join([*parts, text[at:]])

    def shown(self, line: int) -> tuple[int | None, int]:
        """A line of the text as people count it: the cell (None where the file is no notebook), and the line in it."""
        cell = self.cell(line)
        return (None, line) if cell is None else (cell.number, line - cell.line + 1)

    def cell(self, line: int) -> Cell | None:
        """The cell that a line of the text is in; None where the file is no notebook."""
        return cell_at(self.cells, line)


def pack(text: str) -> str | bytes:
    """A text to be kept: one arrow in a comment makes Python keep two bytes for each character, and an emoji four."""
    if text.isascii():
        return text
    try:
        text.encode("latin-1")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")
    return text


@functools.lru_cache(maxsize=16)
def _unpacked(kept: bytes) -> str:
    """(Every function of a file may ask for its text: the last files that some asked for stay as they are.)"""
    return kept.decode("utf-8", "surrogatepass")


#: a file that was written at most so many nanoseconds before it was read may have been written again with the same time
_RACY = 2 * 10**9


class _Digest(NamedTuple):
    """The digest of a file's bytes, with its `_stamp` and the time (ns) before it was read."""

    digest: bytes
    stamp: tuple[int, ...]
    read: int

    def is_current(self, path: Path) -> bool:
        """Whether the file is certain to be as it was."""
        return self.stamp[0] >= 0 and self.stamp[1] < self.read - _RACY and self.stamp == _stamp(path)


def _stamp(path: Path) -> tuple[int, ...]:
    """Size, times of the last changes (of the content and of the entry, ns) and inode of a file; (-1, -1) if it cannot
    be asked."""
    try:
        status = os.stat(path)  # noqa: PTH116 (half the time)
    except (OSError, ValueError):
        return -1, -1
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino


class Sources(Mapping[str, Source]):
    """The files of a project by display path, in order; each is read on first use and then kept."""

    def __init__(
        self, paths: Mapping[str, Path], linted: frozenset[str], given: Mapping[str, bytes] | None = None
    ) -> None:
        self._paths = paths
        self._linted = linted
        #: contents that do not come from the disk (standard input)
        self._given = dict(given or {})
        self._read: dict[str, Source] = {}
        self._digests: dict[str, _Digest] = {}
        #: the files that have changed since their digest was first asked for: what is known of them may be of two
        #: versions, and is not stored
        self.changed: set[str] = set()

    def __getitem__(self, display: str) -> Source:
        source = self._read.get(display)
        if source is None:
            source = self._read[display] = self._load(display)
        return source

    def __contains__(self, display: object) -> bool:
        return display in self._paths

    def __iter__(self) -> Iterator[str]:
        return iter(self._paths)

    def __len__(self) -> int:
        return len(self._paths)

    def is_given(self, display: str) -> bool:
        """Whether a file's content does not come from the disk."""
        return display in self._given

    def raw(self, display: str) -> bytes:
        """The bytes of a file, read anew. Raises OSError, also for what is no regular file or too large."""
        if display in self._given:
            return self._given[display]
        path = self._paths[display]
        return read_file(path, most_of(path))

    def digest(self, display: str) -> bytes:
        """The digest of a file as it was last read; b"" if it cannot be read."""
        if display not in self._digests:
            with contextlib.suppress(OSError):
                self._raw_with_digest(display)
        return self._digests[display].digest

    def digest_now(self, display: str) -> bytes:
        """As `digest`, read again if the file may have changed since."""
        known = self._digests.get(display)
        if known is not None and (self.is_given(display) or known.is_current(self._paths[display])):
            return known.digest
        others = Sources({display: self._paths[display]}, frozenset(), self._given)
        return others.digest(display)

    def _raw_with_digest(self, display: str) -> bytes:
        """As `raw`; the digest is noted, also of a file that cannot be read."""
        stamp, now = _stamp(self._paths[display]), time.time_ns()
        try:
            raw = self.raw(display)
        except OSError:
            self._note(display, _Digest(b"", stamp, now))
            raise
        kind = b"notebook" if is_notebook(self._paths[display]) else b"module"
        self._note(display, _Digest(hashlib.blake2b(raw, digest_size=16, person=kind).digest(), stamp, now))
        return raw

    def _note(self, display: str, digest: _Digest) -> None:
        before = self._digests.get(display)
        if before is not None and before.digest != digest.digest:
            self.changed.add(display)
        self._digests[display] = digest

    @property
    def unread(self) -> dict[str, str]:
        """Why files that were asked for and are not linted could not be read, by display path."""
        found = (source for source in self._read.values() if not source.linted)
        return {source.display: source.unreadable for source in found if source.unreadable is not None}

    def keep(self, others: Sources, without: frozenset[str]) -> None:
        """Take what ``others``, of the same files, have read, but for those files that are others here."""
        self._read |= {display: source for display, source in others._read.items() if display not in without}
        self._digests |= {display: known for display, known in others._digests.items() if display not in without}

    def _load(self, display: str) -> Source:
        path, linted = self._paths[display], display in self._linted
        try:
            raw = self._raw_with_digest(display)
            return _notebook(path, display, raw, linted) if is_notebook(path) else _module(path, display, raw, linted)
        except NotebookError as error:
            return Source(path, display, "", linted, str(error))
        except OSError as error:
            reason = error.strerror or str(error)
            return Source(path, display, "", linted, reason[:1].lower() + reason[1:])
        except (SyntaxError, LookupError, UnicodeError) as error:
            return Source(path, display, "", linted, _encoding_reason(error))
        except Exception as error:  # of a codec, or a mistake of ours: one file costs itself alone
            return Source(path, display, "", linted, f"cannot be read: {type(error).__name__}: {error}")

    def __reduce__(self) -> tuple[object, ...]:
        # what was read stays behind: a worker process reads the few files that it needs
        return Sources, (self._paths, self._linted, self._given)


def _module(path: Path, display: str, raw: bytes, linted: bool) -> Source:
    text = decode(raw)
    masked = python_of_export(text)
    new = modern(masked)
    masks = tuple(masks_of(text, masked))
    return Source(path, display, pack(new), linted, rewritten=new is not masked, masks=masks)


def _notebook(path: Path, display: str, raw: bytes, linted: bool) -> Source:
    found = read_notebook(raw)
    return Source(
        path,
        display,
        pack(found.text),
        linted,
        rewritten=found.rewritten,
        masks=found.masks,
        cells=found.cells,
        problems=found.problems,
        foreign=found.foreign,
    )


def decode(raw: bytes) -> str:
    """The text of a Python file: BOM and coding cookie honoured, newlines kept.

    Raises SyntaxError for an unknown or contradictory encoding, UnicodeDecodeError for bytes that are not in it.
    """
    if b"coding" not in raw[: _end_of_cookies(raw)]:  # most files: looking for what is not there takes longer than this
        return raw.removeprefix(codecs.BOM_UTF8).decode()
    try:
        encoding = encoding_of(raw)
    except SyntaxError:
        raw.decode("utf-8-sig")  # where nothing is declared, this says which byte is wrong
        raise
    return raw.decode(encoding)


def _end_of_cookies(raw: bytes) -> int:
    """Where the first two lines end, which alone can declare an encoding."""
    first = raw.find(b"\n") + 1
    return (raw.find(b"\n", first) + 1 or len(raw)) if first else len(raw)


def encoding_of(raw: bytes) -> str:
    """The encoding that a Python file declares. Raises SyntaxError for an unknown or contradictory one."""
    lines = [_OF_PACKAGES.sub(rb"\1utf-8", line) for line in raw.split(b"\n", 2)]
    return tokenize.detect_encoding(io.BytesIO(b"\n".join(lines)).readline)[0]


#: codecs that packages bring along: UTF-8, with something of newer Pythons made ready for older ones
_OF_PACKAGES = lazy_pattern(rb"^([ \t\f]*#.*?coding[:=][ \t]*)future[-_](?:fstrings|annotations)(?![-\w.])")


def _encoding_reason(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        line = error.object.count(b"\n", 0, error.start) + 1
        byte = error.object[error.start]
        return (
            f"not valid {error.encoding} (byte 0x{byte:02x} in line {line}); declare the encoding or convert the file"
        )
    return f"cannot be decoded: {error}"
