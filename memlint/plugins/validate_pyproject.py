"""The plugin of validate-pyproject: the schema of ``[tool.memlint]``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def schema(tool: str) -> dict[str, Any]:
    """The JSON schema of ``[tool.memlint]``. ``tool`` is always memlint."""
    file = Path(__file__).resolve().parent.parent / "memlint.schema.json"
    found: dict[str, Any] = json.loads(file.read_text("utf-8"))
    return found
