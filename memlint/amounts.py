"""Parsing and formatting of amounts."""

from __future__ import annotations

import re

#: more bytes than any machine has
MOST = 1 << 63
_UNITS = {"": 1, "b": 1}
for _power, _letter in enumerate("kmgt", 1):
    _UNITS |= {_letter: 1000**_power, f"{_letter}b": 1000**_power, f"{_letter}ib": 1024**_power}


def bytes_in(text: str) -> int | None:
    """The number of bytes in a text such as "80 GiB", "500MB" or "1024" (KB, MB, GB are powers of a thousand); None for
    another text."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*", text.lower())
    if match is None or match[2] not in _UNITS:
        return None
    found = float(match[1]) * _UNITS[match[2]]
    return int(found) if found < MOST else None


def plural(count: int, word: str) -> str:
    """A count of things: "1 hit", "2,000 hits", "3 entries"."""
    if count != 1:
        word = f"{word[:-1]}ies" if word.endswith("ry") else f"{word}s"
    return f"{count:,} {word}"
