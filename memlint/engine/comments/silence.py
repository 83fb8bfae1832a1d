"""Which findings a file's comments suppress, and which comments suppress nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from operator import itemgetter

import msgspec

from memlint.config import nearest
from memlint.engine.comments.suppressions import Malformed, Suppression, read
from memlint.engine.findings import Raw, meta_finding
from memlint.engine.rules.rooms import Room
from memlint.engine.rules.selection import ALWAYS, known_words
from memlint.finding import Finding, Suppressed
from memlint.project import Source

UNUSED, UNKNOWN = "MEM001", "MEM002"


def silence(source: Source, raws: list[Raw], rooms: Mapping[str, Room], ran: frozenset[str], whole: bool) -> list[Raw]:
    """The findings with ``suppressed`` set where a comment covers them, and MEM001 and MEM002 on the comments.

    ``ran``: the codes that could have been found in this file; a comment for another one is not called
    unused. ``whole``: the file was analysed to its end.
    """
    display = source.display
    comments = read(source.text, ours_only=not raws, starts=[cell.line for cell in source.cells])
    if not comments.suppressions and not comments.malformed:
        return raws
    codes = {one: _codes(one, rooms) for one in comments.suppressions}
    used: set[tuple[Suppression, str]] = set()
    covering = _Covering(codes)
    result = [_suppressed(raw, covering, used) for raw in raws]
    own = [_raw(_without_effect(display, one)) for one in comments.malformed]
    for one, known in codes.items():
        own += (_raw(finding) for finding in _unknown(display, one, rooms))
        if whole and UNUSED not in known:
            own += (_raw(finding) for finding in _unused(display, one, known & ran, used))
    return result + [_suppressed(raw, covering, used) for raw in own if raw.finding.code in ran]


def _without_effect(display: str, one: Malformed) -> Finding:
    message = f"this suppression has no effect: {one.problem}"
    return meta_finding(UNKNOWN, display, message, "", one.line, one.column, one.end_column)


def _raw(finding: Finding) -> Raw:
    return Raw(finding, "", finding.message)


def _codes(one: Suppression, rooms: Mapping[str, Room]) -> frozenset[str]:
    """The codes of rules that a suppression names."""
    found = (_code(word, rooms) for word in one.codes)
    return frozenset(code for code in found if code is not None)


def _code(word: str, rooms: Mapping[str, Room]) -> str | None:
    if word.upper() in rooms:
        return word.upper()
    name = word.lower().replace("_", "-")
    return next((code for code, room in rooms.items() if room.meta.name == name), None)


class _Covering:
    """The suppressions of a file, by the lines that they cover."""

    #: one that covers more lines is checked at every line
    MOST = 20

    def __init__(self, codes: Mapping[Suppression, frozenset[str]]) -> None:
        self._codes = codes
        self._wide: list[tuple[int, Suppression]] = []
        self._by_line: dict[int, list[tuple[int, Suppression]]] = {}
        for place, one in enumerate(codes):
            if one.by == "ignore-file" or one.last - one.first >= self.MOST:
                self._wide.append((place, one))
            else:
                for line in range(one.first, one.last + 1):
                    self._by_line.setdefault(line, []).append((place, one))

    def at(self, line: int) -> Iterator[tuple[Suppression, frozenset[str]]]:
        """The suppressions of a line, in order, with the codes that they name."""
        wide = (each for each in self._wide if each[1].by == "ignore-file" or each[1].first <= line <= each[1].last)
        for _, one in sorted([*wide, *self._by_line.get(line, ())], key=itemgetter(0)):
            yield one, self._codes[one]


def _suppressed(raw: Raw, covering: _Covering, used: set[tuple[Suppression, str]]) -> Raw:
    code, line = raw.finding.code, raw.finding.line
    if code == ALWAYS:
        return raw
    by: Suppression | None = None
    for one, known in covering.at(line):
        if code in known or not (one.codes or code == UNUSED):
            by = by or one
            used.add((one, code))
    if by is None:
        return raw
    return msgspec.structs.replace(
        raw, finding=msgspec.structs.replace(raw.finding, suppressed=Suppressed(by.by, by.reason))
    )


def _unknown(display: str, one: Suppression, rooms: Mapping[str, Room]) -> Iterator[Finding]:
    for word in one.codes:
        # codes in a noqa may belong to other tools
        if _code(word, rooms) is not None or (one.by == "noqa" and not word.upper().startswith("MEM")):
            continue
        message = f"this suppression names `{word}`, which is not a rule of memlint{nearest(word, known_words(rooms))}"
        yield meta_finding(
            UNKNOWN, display, message, "`memlint rule` lists all rules", one.line, one.column, one.end_column
        )


def _unused(
    display: str, one: Suppression, expected: frozenset[str], used: set[tuple[Suppression, str]]
) -> Iterator[Finding]:
    unused = sorted(code for code in expected if (one, code) not in used and code not in (ALWAYS, UNKNOWN))
    if unused:
        names = " and ".join(unused)
        message = f"this comment suppresses {names}, but there is no such finding here"
        advice = "delete it" if len(unused) == len(one.codes) else f"remove {names} from it"
        yield meta_finding(UNUSED, display, message, advice, one.line, one.column, one.end_column)
