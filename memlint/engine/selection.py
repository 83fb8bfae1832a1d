"""Which rules run: codes, prefixes and names, from the configuration and the command line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from memlint.config import Config, ConfigError, PerFileIgnore, nearest
from memlint.engine.rooms import Room
from memlint.finding import Confidence, Severity

#: a file that does not parse is always reported
ALWAYS = "MEM000"


class Overrides(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line says over the configuration; None or empty where it says nothing."""

    select: tuple[str, ...] | None = None
    extend_select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    preview: bool = False
    min_confidence: Confidence | None = None


class Selection(msgspec.Struct, frozen=True):
    """``enabled``: codes of the rules that run. ``notices``: what the user should know of the choice."""

    enabled: frozenset[str]
    severity: Mapping[str, Severity]
    min_confidence: Confidence
    per_file_ignores: tuple[tuple[PerFileIgnore, frozenset[str]], ...]
    notices: tuple[str, ...] = ()

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
    chosen: set[str] = set(rooms)
    exact: set[str] = set()
    if overrides.select is None:
        chosen = _layer(
            rooms,
            chosen,
            None if config.select is None else _meant(rooms, config.select, f"{where}: `select`"),
            _meant(rooms, config.extend_select, f"{where}: `extend-select`"),
            _meant(rooms, config.ignore, f"{where}: `ignore`"),
        )
        exact |= _exact(rooms, (*(config.select or ()), *config.extend_select))
    cli_select = None if overrides.select is None else _meant(rooms, overrides.select, "--select")
    chosen = _layer(
        rooms,
        chosen,
        cli_select,
        _meant(rooms, overrides.extend_select, "--extend-select"),
        _meant(rooms, overrides.ignore, "--ignore"),
    )
    exact |= _exact(rooms, (*(overrides.select or ()), *overrides.extend_select))
    preview = overrides.preview or config.preview
    left_out = {code for code in chosen if rooms[code].meta.preview and not preview}
    enabled = chosen - left_out
    if not enabled:
        hint = " (preview rules need --preview)" if left_out else ""
        raise ConfigError(f"no rule is selected{hint}")
    notices = tuple(
        f"{code} [{rooms[code].meta.name}] is a preview rule and does not run without --preview"
        for code in sorted(left_out & exact)
    )
    return Selection(
        enabled=frozenset(enabled | {ALWAYS}),
        severity={
            code: severity
            for word, severity in config.severity.items()
            for code in resolve(rooms, word, f"{where}: `severity`")
        },
        min_confidence=overrides.min_confidence or config.min_confidence,
        per_file_ignores=tuple(
            (one, frozenset(_meant(rooms, one.codes, f"{where}: `per-file-ignores`")))
            for one in config.per_file_ignores
        ),
        notices=notices,
    )


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
    raise ConfigError(f"{where}: unknown rule `{text}`{nearest(text, known_words(rooms))}")


def known_words(rooms: Mapping[str, Room]) -> list[str]:
    """Codes and names of all rules."""
    return [*rooms, *(room.meta.name for room in rooms.values())]


def _meant(rooms: Mapping[str, Room], words: Iterable[str], where: str) -> dict[str, int]:
    """Each code that some word means, with the length of the longest such word (names count as whole codes)."""
    lengths: dict[str, int] = {}
    for word in words:
        codes = resolve(rooms, word, where)
        if where.endswith(("ignore", "ignore`", "ignores`")) and codes == (ALWAYS,):
            raise ConfigError(f"{where}: {ALWAYS} cannot be ignored; exclude the file instead")
        for code in codes:
            length = len(code) if len(codes) == 1 else len(word)
            lengths[code] = max(lengths.get(code, 0), 0 if word.upper() == "ALL" else length)
    return lengths


def _layer(
    rooms: Mapping[str, Room],
    before: set[str],
    select: dict[str, int] | None,
    extend: dict[str, int],
    ignore: dict[str, int],
) -> set[str]:
    base = dict.fromkeys(before, -1) if select is None else select
    wanted = {code: max(base.get(code, -2), extend.get(code, -2)) for code in rooms}
    return {code for code, length in wanted.items() if length > -2 and length > ignore.get(code, -2)}


def _exact(rooms: Mapping[str, Room], words: Sequence[str]) -> set[str]:
    """The codes that the user named one by one."""
    found = (resolve(rooms, word, "") for word in words)
    return {codes[0] for codes in found if len(codes) == 1}
