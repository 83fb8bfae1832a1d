"""Names in the strings of a file: what may be reached by a name that a program computes."""

from __future__ import annotations

import functools
from typing import NamedTuple

from memlint.patterns import lazy_pattern

#: a path and a name after a quote, up to another one
_PATH = lazy_pattern(r"([\"'])([\w.:/]+)(?=([\"'(]))")
#: what a function that finds attributes is given; (a name of any length is looked through once)
_GIVEN = lazy_pattern(r"attr\w{0,64}\((?=([^()\n]*))")
_QUOTED = lazy_pattern(r"[\"'](\w+)(?=[\"'])")
_LAST = lazy_pattern(r"(?<!\w)\w+\Z")
#: names that a file hands out
ALL = lazy_pattern(r"__all__\s*(?:\+?=|\.extend\()\s*[\[(][^\])]*[\])]")


class InStrings(NamedTuple):
    """The names that stand at the end of strings: alone, behind a path (``"pkg.name"``), as any of both, be it before
    a parenthesis, and those that what finds attributes is given."""

    alone: frozenset[str]
    behind: frozenset[str]
    called: frozenset[str]
    found: frozenset[str]


#: (all files that have a name are asked, for one name after the other)
@functools.lru_cache(maxsize=256)
def in_strings(source: str) -> InStrings:
    """The names in the strings of a text, what it says that it hands out left out."""
    said = ALL.sub("", source)
    alone: set[str] = set()
    behind: set[str] = set()
    called: set[str] = set()
    for opened, path, closed in _PATH.findall(said):
        last = _LAST.search(path)
        if last is None:
            continue
        called.add(last[0])
        if opened == closed and not last.start():
            alone.add(last[0])
        elif opened == closed and last.start() > 1:
            behind.add(last[0])
    found = {name for given in _GIVEN.findall(said) for name in _QUOTED.findall(given)}
    return InStrings(frozenset(alone), frozenset(behind), frozenset(called), frozenset(found))
