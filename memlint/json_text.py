"""JSON as people read it."""

from __future__ import annotations

import msgspec


def indented(data: object) -> str:
    """Structs and plain values as JSON, indented, with a newline at the end."""
    return msgspec.json.format(msgspec.json.encode(data), indent=2).decode() + "\n"
