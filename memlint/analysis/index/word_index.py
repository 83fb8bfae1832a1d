"""Which files of a project hold a word: whoever asks for what a name means there reads no others."""

from __future__ import annotations

import string
import unicodedata
from collections.abc import Callable, Iterable, Mapping

from memlint.frontend.index_records import ModuleIndex
from memlint.patterns import lazy_pattern
from memlint.project import Source

_WORD = lazy_pattern(r"[^\W\d]\w*")
#: (a pattern that begins with letters is searched for by these, twenty times as fast as one that begins with ``\b``)
_DEFINED = lazy_pattern(r"def(?<!\wdef)[\s\\]+(\w+)")
#: a blank for each byte that is no part of a word; those of characters beyond ASCII are looked at again
_BLANKS = bytes(at if at >= 128 or chr(at).isalnum() or at == ord("_") else ord(" ") for at in range(256))

#: the beginning of a class up to its bases or its body, where these follow
_CLASS = lazy_pattern(r"class(?<![^\s]class)[\s\\]+\w+[\s\\]*(?=[\[(:])")
#: what is in the parentheses after it: no comment and no string, and parentheses in it but one deep
_BASES = lazy_pattern(r"(?:\[[^\[\]'\"#]*\][\s\\]*)?(?::|\(((?:[^()'\"#]|\([^()'\"#]*\))*)\)[\s\\]*:)")


class Words:
    """Found in the text, which takes a tenth of the time that reading it as a program takes, where it was not read."""

    def __init__(self, sources: Mapping[str, Source], known: Callable[[str, str], ModuleIndex | None]) -> None:
        """``known``: the index of a file, by key and text, where it was read as a program."""
        self._sources = sources
        self._known = known
        self._files: dict[str, list[str]] | None = None
        self._defining: dict[str, list[str]] | None = None

    def files(self, word: str) -> list[str]:
        """The files in which the name may stand, in order."""
        if self._files is None:
            self._files = {}
            for key in self._sources:
                text = self._sources[key].text
                index = self._known(key, text)
                if index is None:
                    names: Iterable[str] = words_of(text)
                else:
                    names = index.names
                for name in names:
                    self._files.setdefault(name, []).append(key)
        return self._files.get(word, [])

    def defining(self, method: str) -> list[str]:
        """The files that may define a function or method of that name, in order."""
        if self._defining is None:
            self._defining = {}
            for key in self._sources:
                text = self._sources[key].text
                index = self._known(key, text)
                if index is None or not index.complete:
                    names: Iterable[str] = _identifiers(_DEFINED.findall(text))
                else:
                    names = {method for definition in index.definitions for method in definition.methods}
                for name in names:
                    self._defining.setdefault(name, []).append(key)
        return self._defining.get(method, [])


def words_of(text: str) -> set[str]:
    """The words of a source, its strings and comments included, as Python reads them as names."""
    rough = set(text.encode("utf-8", "surrogatepass").translate(_BLANKS).split())
    found = {word.decode("ascii").lstrip(string.digits) for word in rough if word.isascii()}
    for word in rough:
        if not word.isascii():
            found |= _identifiers(_WORD.findall(word.decode("utf-8", "surrogatepass")))
    return found - {""}


def _identifiers(words: Iterable[str]) -> set[str]:
    """The words as Python reads them as names."""
    return {word if word.isascii() else unicodedata.normalize("NFKC", word) for word in set(words)}


def words_of_bases(text: str) -> frozenset[str] | None:
    """The words between the parentheses of the classes of a source, and maybe more: what is not among them is the base
    of none. None where only a parser can tell."""
    found: set[str] = set()
    for beginning in _CLASS.finditer(text):
        bases = _BASES.match(text, beginning.end())
        if bases is None or not bases[0].isascii():
            return None
        if bases[1]:
            found.update(_WORD.findall(bases[1]))
    return frozenset(found)
