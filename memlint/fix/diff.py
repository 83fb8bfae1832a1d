"""Changes as a unified diff."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from memlint.fix.files import Change


def unified(change: Change) -> bytes:
    """The diff of one file in its own encoding, as ``patch -p0`` accepts it."""
    name = change.display.encode("utf-8", "surrogateescape")
    if b" " in name:
        name += b"\t"  # marks the end of the name, which patch and git would cut at a blank
    rows = difflib.diff_bytes(difflib.unified_diff, _lines(change.before), _lines(change.after), name, name)
    return b"".join(_ended(row) for row in rows)


def _lines(content: bytes) -> list[bytes]:
    r"""The lines of a file as diffs count them, which end with \n alone."""
    return [line + b"\n" for line in content.split(b"\n")[:-1]] + [rest for rest in content.split(b"\n")[-1:] if rest]


def _ended(row: bytes) -> bytes:
    return row if row.endswith(b"\n") else row + b"\n\\ No newline at end of file\n"


def diffs(changes: tuple[Change, ...]) -> Iterator[bytes]:
    """The diffs of all effective changes, in order of path."""
    for change in sorted(changes, key=lambda one: one.display):
        if change.before != change.after:
            yield unified(change)
