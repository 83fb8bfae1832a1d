"""The JSON schema of the configuration, as SchemaStore takes it, made from the struct that reads it."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from memlint.config import Config
from memlint.config_table import Table

#: the schema as it is published; a test holds it against `schema`
FILE = "memlint.schema.json"
ADDRESS = "https://json.schemastore.org/memlint.json"


def schema() -> dict[str, Any]:
    """Draft 7, since editors read no later one everywhere. TOML has no null, so none is valid."""
    described = msgspec.json.schema(Table)["$defs"]["Table"]["properties"]
    defaults = msgspec.structs.asdict(Config())
    properties = {key: _property(part, defaults.get(key.replace("-", "_"))) for key, part in described.items()}
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$id": ADDRESS,
        "title": "memlint",
        "description": "[tool.memlint] in pyproject.toml, or memlint.toml: which findings memlint reports, and where",
        "type": "object",
        "additionalProperties": False,
        "properties": dict(sorted(properties.items())),
    }


def text() -> str:
    """The schema as a file holds it."""
    return json.dumps(schema(), indent=2) + "\n"


def _property(part: dict[str, Any], default: Any) -> dict[str, Any]:
    found = {key: value for key, value in part.items() if key not in ("anyOf", "default")}
    choices = [choice for choice in part.get("anyOf", ()) if choice != {"type": "null"}]
    for choice in (choices[0],) if len(choices) == 1 else ():
        found |= choice
    if len(choices) > 1:
        found["anyOf"] = choices
    if isinstance(found.get("enum"), list):
        found["enum"] = [value for value in found["enum"] if value is not None]
    if isinstance(default, (str, bool)):
        found["default"] = default
    return found
