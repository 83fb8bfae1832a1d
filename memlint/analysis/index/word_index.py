"""Which files of a project contain a word, so that a name is searched for in no other files."""

from __future__ import annotations

import contextlib
import functools
import string
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping

import msgspec

from memlint.analysis.index.text_facts import TextFact, is_worth_storing
from memlint.frontend.index_records import ModuleIndex
from memlint.patterns import lazy_pattern
from memlint.project import Project

#: the most characters around a name that are examined, as lines may be long
_NEAR = 500
#: an import statement up to a name
_IMPORTS = lazy_pattern(r"\s*(?:from\b[^;]*\bimport\b|import\b)[^;]*")
#: the rest of a list of names, without blanks and comments: of an import or of arguments
_LISTED = lazy_pattern(r"(?: ?, ?\w+(?: as \w+)?)* ?,? ?[)\]]* ?[,:]?")
#: another name follows
_RENAMED = lazy_pattern(r"[ \t\r\n\\]{1,20}as(?=[ \t\r\n\\])")
_WORD = lazy_pattern(r"[^\W\d]\w*")
#: a pattern that begins with letters is found twenty times as fast as one that begins with ``\b``
_DEFINED = lazy_pattern(r"def(?<!\wdef)[\s\\]+(\w+)")
#: replaces each byte that is no part of a word by a blank; bytes of non-ASCII characters stay
_BLANKS = bytes(at if at >= 128 or chr(at).isalnum() or at == ord("_") else ord(" ") for at in range(256))

#: the beginning of a class definition, up to its type parameters, bases or body
_CLASS = lazy_pattern(r"class(?<![^\s]class)[\s\\]+\w+[\s\\]*(?=[\[(:])")
#: the bases in parentheses, without comments, strings, and parentheses nested more than once
_BASES = lazy_pattern(r"(?:\[[^\[\]'\"#]*\][\s\\]*)?(?::|\(((?:[^()'\"#]|\([^()'\"#]*\))*)\)[\s\\]*:)")


class _Record(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """The words of files, stored for later runs. ``digests``: the texts' digests, by number; ``words``: the files that
    may contain each word; ``defining``: the files that may define a function of that name."""

    digests: tuple[bytes, ...]
    words: dict[str, tuple[int, ...]]
    defining: dict[str, tuple[int, ...]]


class Words:
    """An inverted index of words to files. The words come from a record of an earlier run, from the file's index if it
    was parsed, or from its text, which takes a tenth of the time of parsing."""

    def __init__(self, project: Project, known: Callable[[str], ModuleIndex | None]) -> None:
        """``known``: the index of a file, or None if it was not parsed."""
        self._sources = project.sources
        self._earlier = project.earlier
        self._known = known
        #: the record's name; an editor has several projects
        self._name = f"words of {project.root}"
        self._holding: dict[str, frozenset[str]] = {}
        self._asked = False

    def files(self, word: str) -> list[str]:
        """The files that may contain the name, in order."""
        self._asked = True
        return self._named.files(word)

    def holding(self, word: str) -> frozenset[str]:
        """As `files`."""
        if word not in self._holding:
            self._holding[word] = frozenset(self.files(word))
        return self._holding[word]

    def defining(self, method: str) -> list[str]:
        """The files that may define a function or method of that name, in order."""
        return self._defining.files(method)

    def keep(self) -> None:
        """Store the words for later runs, if enough files are not in the old record."""
        if self._earlier is None or not self._asked:
            return
        digests = {key: self._sources.digest(key) for key in self._sources}
        missing = sum(digest not in self._recorded for digest in digests.values())
        if not is_worth_storing(missing, len(digests)):
            return
        words, defining = self._named.by_place(), self._defining.by_place()
        if self._sources.changed:
            return
        unread = self._sources.unread  # each run is to say of these that they could not be read
        stored = tuple(b"" if key in unread else digest for key, digest in digests.items())
        self._earlier.put_record(self._name, msgspec.msgpack.encode(_Record(stored, words, defining)))

    @functools.cached_property
    def _record(self) -> _Record:
        """The record of an earlier run; an empty one if there is none."""
        kept = None if self._earlier is None else self._earlier.get_record(self._name)
        with contextlib.suppress(msgspec.MsgspecError, RecursionError):
            return _NOTHING if kept is None else _RECORD.decode(kept)
        return _NOTHING

    @functools.cached_property
    def _recorded(self) -> dict[bytes, int]:
        """The number of each text in the record, by its digest."""
        return {digest: number for number, digest in enumerate(self._record.digests) if digest}

    @functools.cached_property
    def _named(self) -> _Inverted:
        return self._inverted(self._record.words, self._names)

    @functools.cached_property
    def _defining(self) -> _Inverted:
        return self._inverted(self._record.defining, self._defined)

    def _inverted(self, recorded: Mapping[str, tuple[int, ...]], words: Callable[[str], Iterable[str]]) -> _Inverted:
        """``words``: the words of a file that is not in the record, by key."""
        inverted = _Inverted(self._sources, recorded)
        for key in self._sources:
            number = self._recorded.get(self._sources.digest(key)) if self._recorded else None
            if number is None:
                inverted.add(key, words(key))
            else:
                inverted.by_number.setdefault(number, []).append(key)
        return inverted

    def _names(self, key: str) -> Iterable[str]:
        index = self._known(key)
        return words_of(self._sources[key].text) if index is None else index.names

    def _defined(self, key: str) -> Iterable[str]:
        index = self._known(key)
        if index is None or not index.complete:
            return _identifiers(_DEFINED.findall(self._sources[key].text))
        return {method for definition in index.definitions for method in definition.methods}


class _Inverted:
    """The files of each word. ``by_number``: the keys of the files by their number in the record (copies of one text
    share a number)."""

    def __init__(self, keys: Iterable[str], recorded: Mapping[str, tuple[int, ...]]) -> None:
        self._place = {key: place for place, key in enumerate(keys)}
        self._recorded = recorded
        self._added: dict[str, list[str]] = {}
        self.by_number: dict[int, list[str]] = {}
        self._files: dict[str, list[str]] = {}

    def add(self, key: str, words: Iterable[str]) -> None:
        """Add the words of one file."""
        for word in words:
            self._added.setdefault(word, []).append(key)

    def files(self, word: str) -> list[str]:
        """The files that contain a word, in order."""
        if word not in self._files:
            found = [*self._added.get(word, ())]
            for number in self._recorded.get(word, ()):
                found += self.by_number.get(number, ())
            self._files[word] = sorted(set(found), key=self._place.__getitem__)
        return self._files[word]

    def by_place(self) -> dict[str, tuple[int, ...]]:
        """The positions of the files that contain each word."""
        place, words = self._place, {*self._recorded, *self._added}
        return {word: tuple(place[key] for key in found) for word in words if (found := self.files(word))}


_NOTHING = _Record((), {}, {})
_RECORD = msgspec.msgpack.Decoder(_Record)


def words_of(text: str) -> set[str]:
    """The identifiers in a source, including those in strings and comments, normalised as Python does."""
    rough = set(text.encode("utf-8", "surrogatepass").translate(_BLANKS).split())
    found = {word.decode("ascii").lstrip(string.digits) for word in rough if word.isascii()}
    for word in rough:
        if not word.isascii():
            found |= _identifiers(_WORD.findall(word.decode("utf-8", "surrogatepass")))
    return found - {""}


def _identifiers(words: Iterable[str]) -> set[str]:
    """The words, normalised as Python normalises identifiers."""
    return {word if word.isascii() else unicodedata.normalize("NFKC", word) for word in set(words)}


#: characters before a bound name, or between names that are bound together
_BEFORE_BOUND = frozenset("\n\r\f,;:([{*\\|=")
#: keywords that begin a statement which binds names in it
_BEGIN = frozenset({"async", "case", "del", "except", "for", "global", "nonlocal", "with"})
_BINDS = _BEGIN | {"as", "class", "def", "elif", "if", "import", "match", "type", "while"}


def may_bind(text: str, name: str) -> bool:
    """Whether a source may bind a name, by the characters around each occurrence: prose, attributes and renamed imports
    do not bind it. A text that Python would normalise (``ﬁt``) may bind any name."""
    return not _is_plain(text) or any(True for _ in _bindings(text, name))


def may_define(text: str, name: str) -> bool:
    """As `may_bind`, without imports under the same name: the name may be defined, assigned, or an alias."""
    return not _is_plain(text) or any(
        _defines(text, start, start + len(name), word) for start, word in _bindings(text, name)
    )


def _is_plain(text: str) -> bool:
    return text.isascii() or unicodedata.is_normalized("NFKC", text)


def _bindings(text: str, name: str) -> Iterator[tuple[int, str]]:
    """The positions where a name may be bound, each with the word before it ("" for another character)."""
    start = text.find(name)
    while start >= 0:
        end = start + len(name)
        mark, word = _before(text, start)
        begins = not mark or mark in _BEFORE_BOUND or word in _BINDS
        if begins and not _is_word(text[end : end + 1]) and not _is_renamed(text, end):
            yield start, word
        start = text.find(name, end)


def _defines(text: str, start: int, end: int, word: str) -> bool:
    """Whether an occurrence after ``word`` may bind the name by more than an import."""
    before = text[max(start - _NEAR, 0) : start]
    line = before.rpartition("\n")[2]
    rest = text[end : end + _NEAR].partition("\n")[0]
    if word in _BINDS or _last_word(before) == "as":
        return word != "import"
    if _IMPORTS.fullmatch(line) is not None:
        return False
    if len(rest) == _NEAR or _LISTED.fullmatch(" ".join(rest.partition("#")[0].split())) is None:
        return True
    return _first_word(line) in _BEGIN or _is_in_target(text, start, end)


def _is_in_target(text: str, start: int, end: int) -> bool:
    """Whether a name in a list of names may be a target of a statement; the names in the parentheses of an import, a
    call or a class are not."""
    opening = _edge(text[max(start - _NEAR, 0) : start][::-1], ")]}", "([{")
    closing = _edge(text[end : end + _NEAR], "([{", ")]}")
    if opening is None or closing is None:
        return opening is not closing or start > _NEAR
    opened, closed = start - opening - 1, end + closing + 1
    before = text[max(opened - _NEAR, 0) : opened]
    if _last_word(before) == "import":
        return False
    behind = text[closed : closed + _NEAR].partition("\n")[0]
    begins = _first_word(before.rpartition("\n")[2]) in _BEGIN
    return _last_word(before) in ("as", "for") or begins or "=" in behind


def _first_word(text: str) -> str:
    return (text.split(maxsplit=1) or [""])[0]


def _last_word(text: str) -> str:
    """The last word, across line continuations."""
    return (text.rstrip(" \t\r\n\f\\").rsplit(maxsplit=1) or [""])[-1]


def _edge(text: str, deeper: str, higher: str) -> int | None:
    """The position of the bracket that closes one opened before the text; None if it is not in the text."""
    depth = 0
    for at, char in enumerate(text):
        if char in deeper:
            depth += 1
        elif char in higher:
            if not depth:
                return at
            depth -= 1
    return None


def _before(text: str, at: int) -> tuple[str, str]:
    """The last character before a position that is not a blank, and the word before it if blanks separate them."""
    end = at
    while end and text[end - 1] in " \t":
        end -= 1
    start = end
    while end < at and start and _is_word(text[start - 1]):
        start -= 1
    return text[max(end - 1, 0) : end], text[start:end]


def _is_renamed(text: str, end: int) -> bool:
    """Whether ``as`` follows; a ``case`` pattern may bind both names."""
    return _RENAMED.match(text, end) is not None and "case" not in text[max(end - _NEAR, 0) : end]


def _is_word(char: str) -> bool:
    return char.isalnum() or char == "_"


def words_of_bases(text: str) -> frozenset[str] | None:
    """A superset of the words in the bases of all classes of a source; None if only a parser can tell."""
    found: set[str] = set()
    for beginning in _CLASS.finditer(text):
        bases = _BASES.match(text, beginning.end())
        if bases is None or not bases[0].isascii():
            return None
        if bases[1]:
            found.update(_WORD.findall(bases[1]))
    return frozenset(found)


NAMED_BASES = TextFact("words of bases", frozenset[str] | None, words_of_bases)
