"""Names in the strings of a file, by which a program may find a definition."""

from __future__ import annotations

import functools
from typing import NamedTuple

from memlint.patterns import lazy_pattern

#: a path and a name after a quote, up to another one
_PATH = lazy_pattern(r"([\"'])([\w.:/]+)(?=([\"'(]))")
#: the arguments of functions that find attributes; the bound keeps the search linear
_GIVEN = lazy_pattern(r"attr\w{0,64}\((?=([^()\n]*))")
_QUOTED = lazy_pattern(r"[\"'](\w+)(?=[\"'])")
_LAST = lazy_pattern(r"(?<!\w)\w+\Z")
#: the names that a file exports
ALL = lazy_pattern(r"__all__\s*(?:\+?=|\.extend\()\s*[\[(][^\])]*[\])]")


class InStrings(NamedTuple):
    """The names at the end of strings: ``alone``; ``behind`` a path (``"pkg.name"``); ``called``: either, also before a
    parenthesis; ``found``: in the arguments of functions that find attributes."""

    alone: frozenset[str]
    behind: frozenset[str]
    called: frozenset[str]
    found: frozenset[str]


#: cached, as the same files are queried for one name after the other
@functools.lru_cache(maxsize=256)
def in_strings(source: str) -> InStrings:
    """The names in the strings of a text, without those in its ``__all__``."""
    code = ALL.sub("", source)
    alone: set[str] = set()
    behind: set[str] = set()
    called: set[str] = set()
    for opened, path, closed in _PATH.findall(code):
        last = _LAST.search(path)
        if last is None:
            continue
        called.add(last[0])
        if opened == closed and not last.start():
            alone.add(last[0])
        elif opened == closed and last.start() > 1:
            behind.add(last[0])
    found = {name for given in _GIVEN.findall(code) for name in _QUOTED.findall(given)}
    return InStrings(frozenset(alone), frozenset(behind), frozenset(called), frozenset(found))
