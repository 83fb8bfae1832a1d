"""Which rules run: codes, prefixes and names, from the configuration and the command line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from memlint.config import Config, ConfigError, PerFileIgnore, nearest
from memlint.engine.rules.rooms import Room
from memlint.finding import Confidence, Severity
from memlint.printable import clipped

#: a file that does not parse is always reported
ALWAYS = "MEM000"


class Overrides(msgspec.Struct, frozen=True, kw_only=True):
    """The options of the command line that override the configuration; None or empty if not given."""

    select: tuple[str, ...] | None = None
    extend_select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    preview: bool = False
    min_confidence: Confidence | None = None


class Selection(msgspec.Struct, frozen=True):
    """``enabled``: codes of the rules whose findings are shown, ``preview``: of those that ``--preview`` would show,
    ``fixable``: of those whose fixes are given. ``notices``: messages about the choice."""

    enabled: frozenset[str]
    preview: frozenset[str]
    severity: Mapping[str, Severity]
    min_confidence: Confidence
    per_file_ignores: tuple[tuple[PerFileIgnore, frozenset[str]], ...]
    notices: tuple[str, ...] = ()
    fixable: frozenset[str] = frozenset()

    def ignored_in(self, path: Path) -> frozenset[str]:
        """The codes that per-file-ignores drops in a file (absolute path)."""
        codes = (codes for ignore, codes in self.per_file_ignores if ignore.files.match(path) is not None)
        return frozenset().union(*codes)


def choose(rooms: Mapping[str, Room], config: Config, overrides: Overrides) -> Selection:
    """The rules that run.

    ``--select`` starts afresh; without it, what the command line adds and ignores comes on top of the
    configuration. Of a selected and an ignored word that both mean a rule, the longer one wins, and at
    equal length the ignored one. Raises ConfigError for a word that means no rule, and for an empty choice.
    """
    where = str(config.file)
    chosen, exact = set(rooms), set[str]()
    layers: list[tuple[Config | Overrides, str, str, str]] = [(overrides, "--select", "--extend-select", "--ignore")]
    if overrides.select is None:
        layers.insert(0, (config, f"{where}: `select`", f"{where}: `extend-select`", f"{where}: `ignore`"))
    for layer, select, extend, ignore in layers:
        chosen = _chosen(
            chosen,
            None if layer.select is None else _meant(rooms, layer.select, select),
            _meant(rooms, layer.extend_select, extend),
            _ignored(rooms, layer.ignore, ignore),
        )
        exact |= _exact(rooms, (*(layer.select or ()), *layer.extend_select))
    closed = {code for code in chosen if rooms[code].closed}
    left_out = {code for code in chosen if rooms[code].meta.preview and not (overrides.preview or config.preview)}
    if chosen == left_out:
        raise ConfigError("no rule is selected" + (" (preview rules need --preview)" if left_out else ""))
    return Selection(
        enabled=frozenset(chosen - left_out - closed | {ALWAYS}),
        preview=frozenset(left_out - closed),
        severity={
            code: severity
            for word, severity in sorted(config.severity.items(), key=lambda row: _length(rooms, row[0], where))
            for code in resolve(rooms, word, f"{where}: `severity`")
        },
        min_confidence=overrides.min_confidence or config.min_confidence,
        per_file_ignores=tuple(
            (one, frozenset(_ignored(rooms, one.codes, f"{where}: `per-file-ignores`")) - {ALWAYS})
            for one in config.per_file_ignores
        ),
        notices=tuple(
            f"{code} [{rooms[code].meta.name}] is a preview rule and shows nothing without --preview"
            for code in sorted(left_out & exact)
        ),
        fixable=_fixable(rooms, config),
    )


def _fixable(rooms: Mapping[str, Room], config: Config) -> frozenset[str]:
    where = str(config.file)
    wanted = None if config.fixable is None else _meant(rooms, config.fixable, f"{where}: `fixable`")
    return frozenset(_chosen(rooms, wanted, {}, _meant(rooms, config.unfixable, f"{where}: `unfixable`")))


def resolve(rooms: Mapping[str, Room], word: str, where: str) -> tuple[str, ...]:
    """The codes that a code, a prefix of codes, a name or ``ALL`` means. Raises ConfigError, naming the nearest."""
    text = word.strip()
    upper = text.upper()
    if upper == "ALL":
        return tuple(rooms)
    if upper in rooms:
        return (upper,)
    named = tuple(code for code, room in rooms.items() if room.meta.name == text.lower().replace("_", "-"))
    if named:
        return named
    codes = tuple(code for code in rooms if code.startswith(upper)) if upper else ()
    if codes and re.fullmatch(r"[A-Z]+\d*", upper):
        return codes
    raise ConfigError(f"{where}: unknown rule `{clipped(text)}`{nearest(text, known_words(rooms))}")


def find_room(rooms: Mapping[str, Room], word: str) -> Room:
    """The rule of a code or name. Raises ConfigError."""
    name = word.lower().replace("_", "-")
    for code, room in rooms.items():
        if word.upper() == code or name == room.meta.name:
            return room
    raise ConfigError(f"unknown rule `{word}`{nearest(word, known_words(rooms))}; `memlint rule` lists all rules")


def known_words(rooms: Mapping[str, Room]) -> list[str]:
    """Codes and names of all rules."""
    return [*rooms, *(room.meta.name for room in rooms.values())]


def _meant(rooms: Mapping[str, Room], words: Iterable[str], where: str) -> dict[str, int]:
    """Each code that some word means, with the length of the longest such word (names count as whole codes)."""
    lengths: dict[str, int] = {}
    for word in words:
        codes = resolve(rooms, word, where)
        length = 0 if word.upper() == "ALL" else len(word) if len(codes) > 1 else len(codes[0])
        for code in codes:
            lengths[code] = max(lengths.get(code, 0), length)
    return lengths


def _length(rooms: Mapping[str, Room], word: str, where: str) -> int:
    """How closely a word of `severity` matches a rule; the closest one decides."""
    return max(_meant(rooms, [word], f"{where}: `severity`").values())


def _ignored(rooms: Mapping[str, Room], words: Sequence[str], where: str) -> dict[str, int]:
    """As `_meant`. Raises ConfigError for a rule that always runs."""
    if ALWAYS in _exact(rooms, words, where):
        raise ConfigError(f"{where}: {ALWAYS} cannot be ignored; exclude the file instead")
    return _meant(rooms, words, where)


def _chosen(
    before: Iterable[str], select: Mapping[str, int] | None, extend: Mapping[str, int], ignore: Mapping[str, int]
) -> set[str]:
    """The codes after one layer of choices: the longer word wins, and at equal length the ignored one."""
    base = dict.fromkeys(before, -1) if select is None else select
    wanted = {code: max(base.get(code, -1), extend.get(code, -1)) for code in {*base, *extend}}
    return {code for code, length in wanted.items() if code not in ignore or length > ignore[code]}


def _exact(rooms: Mapping[str, Room], words: Sequence[str], where: str = "") -> set[str]:
    """The codes that the user named one by one."""
    found = (resolve(rooms, word, where) for word in words)
    return {codes[0] for codes in found if len(codes) == 1}
