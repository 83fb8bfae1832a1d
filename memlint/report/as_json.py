"""JSON, version 1."""

from __future__ import annotations

from typing import Any, TextIO

import msgspec

from memlint.finding import Finding, Result
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
        "findings": [finding_data(finding) for finding in result.findings],
        "failures": msgspec.to_builtins(result.failures),
        "summary": msgspec.to_builtins(result.summary),
    }


def finding_data(finding: Finding) -> dict[str, Any]:
    """One finding as plain dictionaries."""
    data: dict[str, Any] = msgspec.to_builtins(finding)
    # the format has one message: what is kept, then what to do
    data["message"] = f"{finding.message} {data.pop('advice')}".strip()
    return data
