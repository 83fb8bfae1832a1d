"""JSON, version 1."""

from __future__ import annotations

from typing import Any, TextIO

import msgspec

from memlint.finding import Result
from memlint.report.lines import Lines

VERSION = 1


def write(result: Result, lines: Lines, out: TextIO) -> None:
    """Write the result as one JSON object, indented."""
    data = msgspec.json.encode(document(result))
    out.write(msgspec.json.format(data, indent=2).decode() + "\n")


def document(result: Result) -> dict[str, Any]:
    """The result as plain dictionaries, in the order in which they are written."""
    return {
        "version": VERSION,
        "findings": msgspec.to_builtins(result.findings),
        "failures": msgspec.to_builtins(result.failures),
        "summary": msgspec.to_builtins(result.summary),
    }
