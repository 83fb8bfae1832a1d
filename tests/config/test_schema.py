"""The JSON schema says of a configuration what memlint itself says."""

from __future__ import annotations

import json
import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from validate_pyproject.api import Validator
from validate_pyproject.errors import ValidationError
from validate_pyproject.plugins import PluginWrapper

import memlint
from memlint.config import ConfigError, load
from memlint.config_schema import FILE, schema, text
from memlint.config_table import KEYS
from memlint.plugins import validate_pyproject as plugin

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PUBLISHED = Path(memlint.__file__).parent / FILE


def test_the_published_schema_is_that_of_the_struct() -> None:
    assert PUBLISHED.read_text("utf-8") == text(), f"memlint config --schema > memlint/{FILE}"


def test_the_schema_is_one_and_describes_each_key() -> None:
    jsonschema.Draft7Validator.check_schema(schema())
    assert set(schema()["properties"]) == set(KEYS)
    assert all(part["description"] for part in schema()["properties"].values())


TABLES = [
    ("", True),
    ('select = ["MEM1"]\nignore = []', True),
    ('select = "MEM1"', False),
    ("select = [1]", False),
    ('min-confidence = "high"', True),
    ('min-confidence = "highest"', False),
    ('min_confidence = "high"', False),
    ("preview = true\nunsafe-fixes = false", True),
    ("preview = 1", False),
    ('device-memory = "24 GiB"', True),
    ("device-memory = 24000000000", True),
    ("device-memory = 1.5", False),
    ('evidence = "a.json"', True),
    ('evidence = ["a.json", "b.json"]', True),
    ("evidence = true", False),
    ('severity = {MEM101 = "note"}', True),
    ('severity = {MEM101 = "fatal"}', False),
    ('per-file-ignores = {"tests/*" = ["MEM1"]}', True),
    ('per-file-ignores = {"tests/*" = "MEM1"}', False),
    ('scalar-fix = "item"\nunused-code = "ignore"', True),
    ('scalar-fix = "numpy"', False),
    ('baseline = "base.json"', True),
    ('baseline = ["base.json"]', False),
    ("unknown = 1", False),
]


@pytest.mark.parametrize(("table", "is_valid"), TABLES)
def test_schema_and_reader_agree(tmp_path: Path, table: str, is_valid: bool) -> None:
    file = tmp_path / "memlint.toml"
    file.write_text(table)
    for name in ("a.json", "b.json", "base.json"):
        (tmp_path / name).touch()
    assert jsonschema.Draft7Validator(schema()).is_valid(tomllib.loads(table)) == is_valid
    if is_valid:
        load(file, tmp_path)
    else:
        with pytest.raises(ConfigError):
            load(file, tmp_path)


@pytest.mark.parametrize(("table", "is_valid"), [({"preview": True}, True), ({"preveiw": True}, False)])
def test_validate_pyproject_knows_the_table(table: dict[str, Any], is_valid: bool) -> None:
    (entry,) = (one for one in entry_points(group="validate_pyproject.tool_schema") if one.name == "memlint")
    assert entry.load() is plugin.schema
    validate = Validator(plugins=[PluginWrapper("memlint", plugin.schema)])
    document = {"tool": {"memlint": table}}
    if is_valid:
        validate(document)
    else:
        with pytest.raises(ValidationError):
            validate(document)


def test_the_plugin_gives_what_is_published() -> None:
    assert plugin.schema("memlint") == json.loads(PUBLISHED.read_text("utf-8"))
