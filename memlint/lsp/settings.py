"""The user's settings in the editor."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal, get_args

import msgspec

from memlint.config import nearest
from memlint.engine.rules.selection import Overrides
from memlint.finding import Confidence
from memlint.printable import clipped

Run = Literal["onType", "onSave"]
SECTION = "memlint"


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """``enable``: whether anything is checked; ``run``: when; ``explain``: whether hovers show facts about values;
    ``verify``: options of ``memlint verify``. The others override the configuration, as options of the command line
    do."""

    enable: bool = True
    run: Run = "onType"
    preview: bool = False
    min_confidence: Confidence | None = None
    select: tuple[str, ...] | None = None
    ignore: tuple[str, ...] = ()
    explain: bool = True
    verify: tuple[str, ...] = ()

    @property
    def overrides(self) -> Overrides:
        return Overrides(
            select=self.select, ignore=self.ignore, preview=self.preview, min_confidence=self.min_confidence
        )


#: the name in the editor, the field, and its type
_FIELDS: dict[str, tuple[str, Any]] = {
    "enable": ("enable", bool),
    "lint.run": ("run", Run),
    "hover.explain": ("explain", bool),
    "verify.args": ("verify", tuple[str, ...] | None),
    "preview": ("preview", bool),
    "minConfidence": ("min_confidence", Confidence | None),
    "select": ("select", tuple[str, ...] | None),
    "ignore": ("ignore", tuple[str, ...] | None),
}
#: settings for the extension alone
_OTHERS = frozenset({"path", "interpreter", "trace.server", "args"})


def section_of(data: Any) -> Mapping[str, Any] | None:
    """The part of a client's settings for memlint, under its name or alone; None if there is none, so that it may be
    requested."""
    if not isinstance(data, Mapping):
        return None
    for key in ("settings", SECTION):
        if isinstance(data.get(key), Mapping):
            return section_of(data[key]) or data[key]
    ours = {key.removeprefix(f"{SECTION}."): value for key, value in data.items()}
    names = {name.partition(".")[0] for name in (*_FIELDS, *_OTHERS)}
    return ours if any(key.partition(".")[0] in names for key in ours) else None


def settings_of(*layers: Any) -> tuple[Settings, list[str]]:
    """The settings, where the last layer with a setting decides, and errors; an invalid setting is ignored."""
    values: dict[str, Any] = {}
    problems: list[str] = []
    flat = {name: value for data in layers for name, value in _flat(section_of(data) or {}, "")}
    for name, value in flat.items():
        if name in _OTHERS:
            continue
        if name not in _FIELDS:
            problems.append(f"there is no setting `{SECTION}.{clipped(name)}`{nearest(name, tuple(_FIELDS))}")
            continue
        field, kind = _FIELDS[name]
        try:
            found = msgspec.convert(value, kind)
        except msgspec.ValidationError as error:
            words = get_args(kind) if kind is Run else get_args(Confidence) if field == "min_confidence" else ()
            wanted = f" (one of {', '.join(words)})" if words else ""
            problems.append(f"`{SECTION}.{name}`: {error}{wanted}")
            continue
        if found is not None:
            values[field] = found
    # editors send an unset list as an empty one
    if not values.get("select", True):
        del values["select"]
    return Settings(**values), problems


def _flat(data: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    """The settings by dotted names."""
    for key, value in data.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
