"""JSON, version 1."""

from __future__ import annotations

from typing import Any

import msgspec

from memlint.finding import Result
from memlint.json_text import indented
from memlint.report.lines import Lines
from memlint.report.setting import Setting

VERSION = 1


def render(result: Result, lines: Lines, setting: Setting) -> str:
    """The result as one JSON object, indented."""
    return indented(document(result))


def document(result: Result) -> dict[str, Any]:
    """The result as plain dictionaries, in the order in which they are written."""
    return {
        "version": VERSION,
        "findings": msgspec.to_builtins(result.findings),
        "failures": msgspec.to_builtins(result.failures),
        "summary": msgspec.to_builtins(result.summary),
    }
