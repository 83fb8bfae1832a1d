"""Changes as a unified diff."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from memlint.fix.files import Change


def unified(change: Change) -> bytes:
    """The diff of one file, in the bytes of the file, as ``patch -p0`` takes it."""
    name = change.display.encode("utf-8", "surrogateescape")
    if b" " in name:
        name += b"\t"  # where it ends: patch and git would take the first word
    rows = difflib.diff_bytes(difflib.unified_diff, _lines(change.before), _lines(change.after), name, name)
    return b"".join(_ended(row) for row in rows)


def _lines(content: bytes) -> list[bytes]:
    r"""Lines as diffs count them, which end in \n alone."""
    return [line + b"\n" for line in content.split(b"\n")[:-1]] + [rest for rest in content.split(b"\n")[-1:] if rest]


def _ended(row: bytes) -> bytes:
    return row if row.endswith(b"\n") else row + b"\n\\ No newline at end of file\n"


def diffs(changes: tuple[Change, ...]) -> Iterator[bytes]:
    """The diffs of all changes that change something, in order of path."""
    for change in sorted(changes, key=lambda one: one.display):
        if change.before != change.after:
            yield unified(change)
