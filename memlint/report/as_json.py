"""JSON, version 1."""

from __future__ import annotations

from typing import Any

import msgspec

from memlint.finding import Result
from memlint.report.lines import Lines
from memlint.report.setting import Setting

VERSION = 1


def render(result: Result, lines: Lines, setting: Setting) -> str:
    """The result as one JSON object, indented."""
    return indented(document(result))


def indented(data: object) -> str:
    """``data`` as JSON, indented, with a newline at the end."""
    return msgspec.json.format(msgspec.json.encode(data), indent=2).decode() + "\n"


def document(result: Result) -> dict[str, Any]:
    """The result as plain dictionaries, in the order in which they are written."""
    return {
        "version": VERSION,
        "findings": msgspec.to_builtins(result.findings),
        "failures": msgspec.to_builtins(result.failures),
        "summary": msgspec.to_builtins(result.summary),
    }
