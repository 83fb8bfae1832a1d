"""Escaping of untrusted text for output: it controls no terminal, and stays on its line."""

from __future__ import annotations

import re

from memlint.patterns import lazy_pattern

#: control characters, line ends, direction marks and lone surrogates
_CONTROL = lazy_pattern(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)


def printable(text: str) -> str:
    """The text with control characters as Python writes them in a literal."""
    return text if text.isascii() and text.isprintable() else _CONTROL.sub(_escaped, text)


def clipped(text: str, most: int = 100) -> str:
    """A text, shortened for a message."""
    return text if len(text) <= most else f"{text[: most // 2]}…{text[-most // 10 :]} ({len(text):,} characters)"


def _escaped(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode("ascii")
