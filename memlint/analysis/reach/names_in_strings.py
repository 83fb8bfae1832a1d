"""Names in strings, by which a program may find a definition."""

from __future__ import annotations

from typing import NamedTuple

from memlint.analysis.index.program import Program
from memlint.analysis.index.program_memo import memoized_in_program
from memlint.analysis.index.text_facts import TextFact
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


@memoized_in_program
def in_strings(program: Program) -> InStrings:
    """The names in the strings of all files, without those in their ``__all__``."""
    found = [program.text_facts.get(_IN_STRINGS, key) for key in program.project.sources]
    return InStrings(*(frozenset[str]().union(*names) for names in zip(*found, strict=True)))


def _in_strings(source: str) -> InStrings:
    """As `in_strings`, of one text."""
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


_IN_STRINGS = TextFact("names in strings", InStrings, _in_strings)
