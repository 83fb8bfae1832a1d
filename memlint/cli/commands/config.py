"""``memlint config``: the effective settings, and their origins."""

from __future__ import annotations

import argparse
import json
import os.path
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from memlint import config as configuration
from memlint.cli.commands.check import agree, options_of_check
from memlint.cli.output.endings import tell
from memlint.config import Config, ConfigError, Layer
from memlint.config_table import KEYS
from memlint.engine.options import Options
from memlint.engine.rules.trust import said_of
from memlint.engine.run import absolute, configured
from memlint.printable import printable
from memlint.project import display_path, find_root

VERSION = 1
#: keys that are merged over files which extend each other; for all others the nearest file counts
_ADDED_UP = ("extend-select", "extend-exclude", "per-file-ignores", "severity")
_PATHS = ("import-roots", "rule-paths", "evidence", "baseline")
#: keys with a command-line option, and its effect on them
_REPLACED = {
    "select": "select",
    "min-confidence": "min_confidence",
    "exclude": "exclude",
    "unsafe-fixes": "unsafe_fixes",
    "evidence": "evidence",
    "baseline": "baseline",
}
_EXTENDED = {"extend-select": "extend_select", "ignore": "ignore", "extend-exclude": "extend_exclude"}
_DEFAULTS = {
    "min-confidence": Config().min_confidence,
    "unused-code": Config().unused_code,
    "scalar-fix": Config().scalar_fix,
    "preview": False,
    "unsafe-fixes": False,
    "select": ["ALL"],
    "fixable": ["ALL"],
    "device-memory": None,
    "baseline": None,
}


class Origin(msgspec.Struct, frozen=True):
    """The origin of a value, or of a part of it: the ``file`` with the key, or the ``option`` of the command line;
    neither for the default."""

    file: str | None = None
    option: str | None = None

    def __str__(self) -> str:
        return self.file or self.option or "default"


class Setting(msgspec.Struct, frozen=True, rename={"origins": "from"}):
    key: str
    value: Any
    origins: list[Origin]


def show(parsed: argparse.Namespace) -> int:
    """Print the settings of a project. Raises ConfigError if they are invalid."""
    if parsed.schema:
        from memlint.config_schema import text

        print(text(), end="")
        return 0
    if len(parsed.paths) > 1:
        raise ConfigError("name one path: each may be of another project")
    if parsed.output_format not in (None, "text", "json"):
        raise ConfigError("config prints text or json")
    agree(parsed)
    options = options_of_check(parsed)
    path = absolute(parsed.paths[0] if parsed.paths else ".", options.cwd)
    if not os.path.lexists(path):
        raise ConfigError(f"there is no file or folder {parsed.paths[0]}")
    root = find_root(path, options.cwd)
    ruling = configured(root, options)
    file = ruling.config.file
    layers = [] if file is None else configuration.layers(file)
    if ruling.config.closed_rules and not parsed.quiet:
        tell(f"warning: {said_of(ruling.config.closed_rules, root)}")
    settings = [_setting(key, layers, parsed, options) for key in KEYS if key != "extend"]
    rules = sorted(ruling.selection.enabled)
    if parsed.output_format == "json":
        data = {
            "version": VERSION,
            "project": str(root),
            "files": [str(layer.file) for layer in layers],
            "settings": msgspec.to_builtins(settings),
            "rules": rules,
        }
        print(json.dumps(data, indent=2))
        return 0
    print(printable(f"# project: {root}"))
    for row in _rows(settings):
        print(printable(row))
    print(f"# rules that run: {', '.join(rules)}")
    return 0


def _setting(key: str, layers: list[Layer], parsed: argparse.Namespace, options: Options) -> Setting:
    """The value of a key and its origins, the nearest first."""
    given = _of_command_line(key, parsed, layers)
    if given is not None and key in _REPLACED:
        return Setting(key, given.value, given.origins)
    if parsed.select is not None and key in ("extend-select", "ignore"):  # --select starts afresh
        layers = []
    with_it = [layer for layer in layers if key in layer.keys]
    if not with_it and given is None:
        return Setting(key, _DEFAULTS.get(key, {} if key in ("per-file-ignores", "severity") else []), [Origin()])
    used = with_it if key in _ADDED_UP else with_it[:1]
    values = [_value(key, layer, options.cwd) for layer in used]
    origins = [Origin(file=display_path(layer.file, options.cwd)) for layer in used]
    if given is not None:
        values, origins = [given.value, *values], [*given.origins, *origins]
    return Setting(key, _together(values), origins)


def _of_command_line(key: str, parsed: argparse.Namespace, layers: list[Layer]) -> Setting | None:
    """The command line's value of a key; None if it has none."""
    name = (_REPLACED | _EXTENDED).get(key)
    option = f"--{key}"
    if key == "preview":
        return Setting(key, True, [Origin(option=option)]) if parsed.preview else None
    if key == "baseline" and parsed.no_baseline:
        return Setting(key, None, [Origin(option="--no-baseline")])
    value = None if name is None else getattr(parsed, name)
    if key == "unsafe-fixes" and value is False:
        option = "--no-unsafe-fixes"
    return None if value is None else Setting(key, value, [Origin(option=option)])


def _value(key: str, layer: Layer, cwd: Path) -> Any:
    value = getattr(layer.table, key.replace("-", "_"))
    if key not in _PATHS:
        return value
    names = [value] if isinstance(value, str) else value
    places = [display_path(absolute(name, layer.file.parent), cwd) or "." for name in names]
    return places[0] if key == "baseline" else places


def _together(values: list[Any]) -> Any:
    """The merged value of several, of which the first is the nearest."""
    if isinstance(values[0], Mapping):
        return {key: value for table in reversed(values) for key, value in table.items()}
    if isinstance(values[0], list):
        return [entry for value in reversed(values) for entry in value]
    return values[0]


def _rows(settings: list[Setting]) -> Iterator[str]:
    """The settings as TOML, with their origins as comments."""
    lines = [_toml(setting) for setting in settings]
    width = min(max(map(len, lines)), 60)
    for setting, line in zip(settings, lines, strict=True):
        yield f"{line:<{width}}  # {', '.join(map(str, setting.origins))}"


def _toml(setting: Setting) -> str:
    if setting.value is None:
        return f"# {setting.key} is not set"
    return f"{setting.key} = {_written(setting.value)}"


def _written(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json.dumps(key)} = {_written(one)}" for key, one in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_written, value)) + "]"
    return json.dumps(value, ensure_ascii=False)
