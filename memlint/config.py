"""The configuration: ``[tool.memlint]`` in a pyproject.toml, or a memlint.toml."""

from __future__ import annotations

import os.path
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from memlint.amounts import bytes_in
from memlint.config_table import KEYS, WORDS, ScalarFix, Table, UnusedCode
from memlint.finding import Confidence, Severity
from memlint.patterns import lazy_pattern
from memlint.printable import clipped
from memlint.project import Patterns, mistake
from memlint.project.patterns import MAX_PATTERNS
from memlint.project.presence import exists, is_dir, listed
from memlint.reading import MAX_SETTINGS, leads_out, read_file, refusal

T = TypeVar("T")

OWN_FILE = "memlint.toml"
PYPROJECT = "pyproject.toml"


class ConfigError(Exception):
    """What is wrong with the configuration or the command line, in one sentence for the user. ``hint``: a line of its
    own that says where to read more."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class PerFileIgnore(msgspec.Struct, frozen=True):
    """Findings of ``codes`` (as written) are dropped in the files that ``files`` means."""

    files: Patterns
    codes: tuple[str, ...]


class Layer(msgspec.Struct, frozen=True):
    """One file of a configuration. ``keys``: those that it has."""

    file: Path
    table: Table
    keys: frozenset[str]


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """What the configuration says; codes are as written (codes, prefixes or names), paths absolute.

    ``file``: where it comes from (None: there is none). ``device_memory``: bytes. ``fixable`` and ``unfixable``: the
    rules whose fixes are given (None: all), and those whose are not. ``evidence``: files that ``memlint verify`` wrote.
    ``baseline``: findings that are put off.
    ``closed_rules``: folders of rules that are known by name alone, since nobody trusts them.
    """

    file: Path | None = None
    select: tuple[str, ...] | None = None
    extend_select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    per_file_ignores: tuple[PerFileIgnore, ...] = ()
    exclude: tuple[Patterns, ...] = ()
    preview: bool = False
    min_confidence: Confidence = "medium"
    unused_code: UnusedCode = "report"
    severity: Mapping[str, Severity] = {}
    import_roots: tuple[Path, ...] = ()
    rule_paths: tuple[Path, ...] = ()
    closed_rules: tuple[Path, ...] = ()
    device_memory: int | None = None
    unsafe_fixes: bool = False
    fixable: tuple[str, ...] | None = None
    unfixable: tuple[str, ...] = ()
    scalar_fix: ScalarFix = "detach"
    evidence: tuple[Path, ...] = ()
    baseline: Path | None = None


#: no word that is valid is nearly as long, and no chain of files that extend each other
_MAX_WORD, _MAX_CHAIN = 100, 20
#: more parts than any key has: Python's reader takes time quadratic in them
_LONG_KEY = lazy_pattern(r"""(?<![\w"'-])(?:(?:[\w-]+|"[^"\n]*"|'[^'\n]*')[ \t]*\.[ \t]*){100}""")


def find(start: Path) -> Path | None:
    """The closest configuration at or above the folder ``start``: a memlint.toml, or a pyproject.toml with our table.

    The search ends at the root of the repository. Raises ConfigError for a pyproject.toml that is no TOML, and for what
    is no file of the repository.
    """
    for folder in (start, *start.parents):
        for file in (folder / OWN_FILE, folder / PYPROJECT):
            if not os.path.lexists(file):
                continue
            top = next((above for above in (folder, *folder.parents) if exists(above / ".git")), folder)
            if exists(file) and leads_out(file, top):
                raise ConfigError(f"{file}: a link that leads out of {top}; name the file by --config if it is meant")
            if file.name == OWN_FILE or _table_of(file) is not None:
                return file
        if exists(folder / ".git"):
            return None
    return None


def load(file: Path, project: Path) -> Config:
    """The configuration in ``file``, with what it extends. ``project``: the folder that rules may come from.

    Raises ConfigError, naming the key, the file and the nearest valid key.
    """
    config = Config()
    for layer in reversed(layers(file)):
        config = _over(config, layer)
    for key, paths in (("rule-paths", config.rule_paths), ("import-roots", config.import_roots)):
        for path in paths:
            if not is_dir(path):
                raise ConfigError(f"{file}: `{key}`: {path} is not a folder{_nearest_path(path)}")
    for path in config.rule_paths:
        if not path.resolve().is_relative_to(project.resolve()):
            raise ConfigError(f"{file}: `rule-paths`: {path} lies outside of the project {project}")
    return config


def nearest(word: str, valid: Sequence[str]) -> str:
    """The end of an error message: " (did you mean `…`?)", or nothing where no valid word is like ``word``."""
    import difflib

    if not valid or len(word) > _MAX_WORD:
        return ""
    low = word.lower()
    likeness = [difflib.SequenceMatcher(None, low, one.lower()).ratio() for one in valid]
    # of codes that are equally close, the one that begins alike: MEM1 is rather MEM101 than MEM401
    alike = [one.lower().startswith(low) for one in valid]
    best = max(range(len(valid)), key=lambda at: (likeness[at], alike[at], -at))
    return f" (did you mean `{valid[best]}`?)" if likeness[best] >= 0.6 else ""


def _nearest_path(path: Path) -> str:
    """As `nearest`, of what lies beside a path that is not there."""
    return nearest(path.name, listed(path.parent) or ())


def layers(file: Path) -> list[Layer]:
    """A configuration and those that it extends, each behind the one that extends it. Raises ConfigError."""
    found: list[Layer] = []
    following: Path | None = file
    while following is not None:
        if any(layer.file == following for layer in found):
            raise ConfigError(f"{following}: `extend` comes back to this file")
        if len(found) > _MAX_CHAIN:
            raise ConfigError(f"{following}: `extend`: more than {_MAX_CHAIN} files extend each other")
        raw = _table_of(following)
        if raw is None:
            raise ConfigError(f"{following}: has no [tool.memlint] table")
        found.append(Layer(following, _checked(raw, following), frozenset(raw)))
        following = _extended(found[-1])
    return found


def _extended(layer: Layer) -> Path | None:
    """The file that a configuration extends. Raises ConfigError."""
    file, name = layer.file, layer.table.extend
    if name is None:
        return None
    try:
        extended = Path(os.path.realpath(file.parent / Path(name).expanduser()))
    except (RuntimeError, ValueError) as error:
        raise ConfigError(f"{file}: `extend`: `{clipped(name)}` is no path: {clipped(str(error))}") from None
    if not os.path.lexists(extended):
        raise ConfigError(f"{file}: `extend`: there is no file {extended}{_nearest_path(extended)}")
    if (why := refusal(extended, MAX_SETTINGS)) is not None:
        raise ConfigError(f"{file}: `extend`: {extended} cannot be read: {why}")
    return extended


def _over(base: Config, layer: Layer) -> Config:
    """A configuration that extends another."""
    file, table, folder = layer.file, layer.table, layer.file.parent
    exclude = base.exclude if table.exclude is None else (patterns(folder, table.exclude, f"{file}: `exclude`"),)
    return Config(
        file=file,
        select=_either(_codes(table.select), base.select),
        extend_select=base.extend_select + tuple(table.extend_select),
        ignore=_either(_codes(table.ignore), base.ignore),
        per_file_ignores=base.per_file_ignores + tuple(
            PerFileIgnore(patterns(folder, [pattern], f"{file}: `per-file-ignores`"), tuple(codes))
            for pattern, codes in table.per_file_ignores.items()
        ),
        exclude=(*exclude, patterns(folder, table.extend_exclude, f"{file}: `extend-exclude`")),
        preview=_either(table.preview, base.preview),
        min_confidence=_either(table.min_confidence, base.min_confidence),
        unused_code=_either(table.unused_code, base.unused_code),
        severity={**base.severity, **table.severity},
        import_roots=_either(_folders(folder, table.import_roots), base.import_roots),
        rule_paths=_either(_folders(folder, table.rule_paths), base.rule_paths),
        device_memory=_either(_bytes(table.device_memory, file), base.device_memory),
        unsafe_fixes=_either(table.unsafe_fixes, base.unsafe_fixes),
        fixable=_either(_codes(table.fixable), base.fixable),
        unfixable=_either(_codes(table.unfixable), base.unfixable),
        scalar_fix=_either(table.scalar_fix, base.scalar_fix),
        evidence=_either(_folders(folder, _listed(table.evidence)), base.evidence),
        baseline=_either(None if table.baseline is None else folder / table.baseline, base.baseline),
    )  # fmt: skip


def _checked(raw: dict[str, Any], file: Path) -> Table:
    for key in raw:
        if key == "memlint" and file.name != PYPROJECT:
            raise ConfigError(f"{file}: the keys of [memlint] belong at the top of this file, or under [tool.memlint]")
        if key not in KEYS:
            raise ConfigError(f"{file}: unknown key `{clipped(key)}`{nearest(key, KEYS)}")
    for key, value in raw.items():
        entries: list[tuple[str, dict[str, Any]]] = [(key, {key: value})]
        if isinstance(value, dict):
            entries = [(f"{key}.{name}", {key: {name: one}}) for name, one in value.items()]
        for where, entry in entries:
            _check_entry(where, entry, f"{file}: `{clipped(where)}`")
    return msgspec.convert(raw, Table)


def _check_entry(where: str, entry: dict[str, Any], said: str) -> None:
    """Raises ConfigError, beginning with ``said``, where a table with this one entry is wrong."""
    key, _, name = where.partition(".")
    value = entry[key][name] if name else entry[key]
    valid = WORDS.get(key)
    if valid is not None and isinstance(value, str) and value not in valid:
        raise ConfigError(f"{said}: `{clipped(value)}` is not one of {', '.join(valid)}{nearest(value, valid)}")
    try:
        msgspec.convert(entry, Table)
    except RecursionError:
        raise ConfigError(f"{said}: it nests too deeply") from None
    except msgspec.ValidationError as error:
        what, _, place = str(error).replace(" | null", "").partition(" - at ")
        item = "" if (number := re.search(r"\[(\d+)\]", place)) is None else f": item {int(number[1]) + 1}"
        raise ConfigError(f"{said}{item}: {what[:1].lower()}{what[1:]}") from None


def _table_of(file: Path) -> dict[str, Any] | None:
    """The table of memlint in a TOML file, or None where a pyproject.toml has none."""
    data = read_toml(file)
    tool = data.get("tool", {})
    table = tool.get("memlint") if isinstance(tool, dict) else None
    if table is None and file.name != PYPROJECT:
        table = {key: value for key, value in data.items() if key != "tool"}
    if table is not None and not isinstance(table, dict):
        raise ConfigError(f"{file}: `tool.memlint` must be a table")
    return table


def read_toml(file: Path) -> dict[str, Any]:
    """What a TOML file holds. Raises ConfigError."""
    try:
        text = read_file(file, MAX_SETTINGS).decode("utf-8-sig")
        if _LONG_KEY.search(text):
            raise ConfigError(f"{file}: not valid TOML: a key has more than 100 parts")
        return parse_toml(text)
    except RecursionError:
        raise ConfigError(f"{file}: not valid TOML: it nests too deeply") from None
    except ValueError as error:  # bad TOML, bad UTF-8, numbers of too many digits
        raise ConfigError(f"{file}: not valid TOML: {clipped(str(error), 300)}") from None
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read: {error.strerror}") from None


def parse_toml(text: str) -> dict[str, Any]:
    """What a text in TOML says. Raises ValueError and RecursionError."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    data: dict[str, Any] = tomllib.loads(text)
    return data


def patterns(folder: Path, lines: Sequence[str], where: str) -> Patterns:
    """Gitignore patterns relative to ``folder``. Raises ConfigError for one that means nothing."""
    found = tuple(line.removeprefix("./") for line in lines)
    if len(found) > MAX_PATTERNS:
        raise ConfigError(f"{where}: more than {MAX_PATTERNS:,} patterns")
    for problem in filter(None, map(mistake, found)):
        raise ConfigError(f"{where}: {problem}")
    return Patterns(folder, found)


def _either(value: T | None, other: T) -> T:
    return other if value is None else value


def _codes(codes: list[str] | None) -> tuple[str, ...] | None:
    return None if codes is None else tuple(codes)


def _listed(names: str | list[str] | None) -> list[str] | None:
    return [names] if isinstance(names, str) else names


def _folders(folder: Path, names: list[str] | None) -> tuple[Path, ...] | None:
    return None if names is None else tuple(folder / name for name in names)


def _bytes(value: int | str | None, file: Path) -> int | None:
    """Bytes from a number of them or a text such as "80 GiB" (KB, MB, GB count in thousands)."""
    if value is None:
        return None
    found = bytes_in(str(value))
    if not found:
        raise ConfigError(
            f"{file}: `device-memory`: {clipped(repr(value))} is no amount of memory; write for example 80 GiB"
        )
    return found
