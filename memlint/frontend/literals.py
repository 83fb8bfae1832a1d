"""Literals: their source text -> kind and value of a Const."""

from __future__ import annotations

import re
import unicodedata

from memlint.patterns import lazy_pattern

#: longer string values are cut, as no rule reads more of them
MAX_STRING = 200

_ESCAPE = lazy_pattern(r"\\(\n|[0-7]{1,3}|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|N\{[^}]*\}|.)", re.DOTALL)
_SIMPLE = {"\n": "", **dict(zip("\\'\"abfnrtv", "\\'\"\a\b\f\n\r\t\v", strict=True))}
_INT_LIMIT = 1 << 63


def string(text: str) -> tuple[str, str | None]:
    """(kind, value) of one string literal; the value of bytes is None."""
    quote = min(i for i in (text.find("'"), text.find('"')) if i >= 0)
    prefix = text[:quote].lower()
    if "b" in prefix:
        return "bytes", None
    width = 3 if text.startswith(text[quote] * 3, quote) and len(text) >= quote + 6 else 1
    value = text[quote + width : -width]
    if "\\" in value and "r" not in prefix:
        value = _ESCAPE.sub(_unescape, value)
    return "str", value[:MAX_STRING]


def _unescape(match: re.Match[str]) -> str:
    escape = match[1]
    if escape in _SIMPLE:
        return _SIMPLE[escape]
    if escape[0] in "01234567":
        return chr(int(escape, 8))
    if escape[0] == "N" and len(escape) > 1:
        return _named(escape[2:-1])
    if escape[0] in "xuU" and len(escape) > 1:
        return _character(int(escape[1:], 16))
    return match[0]


def _named(name: str) -> str:
    try:
        return unicodedata.lookup(name)
    except KeyError:
        return "\ufffd"


def _character(code: int) -> str:
    # Lone surrogates cannot be encoded, so they cannot be cached.
    return "\ufffd" if 0xD800 <= code < 0xE000 or code > 0x10FFFF else chr(code)


def integer(text: str) -> int | float:
    try:
        value = int(text, 0)
    except ValueError:
        # More digits than int() converts (sys.set_int_max_str_digits).
        return float("inf")
    return bounded(value)


def bounded(value: int) -> int | float:
    """``value``, as a float if it has more than 63 bits."""
    if value < _INT_LIMIT:
        return value
    try:
        return float(value)
    except OverflowError:
        return float("inf")


def floating(text: str) -> float:
    return float(text.replace("_", ""))


def identifier(text: str) -> str:
    """``text`` as Python compares it: normalised to NFKC."""
    return text if text.isascii() else unicodedata.normalize("NFKC", text)
