"""One line a finding."""

from __future__ import annotations

from typing import TextIO

from memlint.finding import Result
from memlint.report.lines import Lines
from memlint.report.summary import summary


def write(result: Result, lines: Lines, out: TextIO) -> None:
    """``path:line:column: severity CODE[name] message``, and the summary."""
    for one in result.findings:
        if one.suppressed is None:
            out.write(f"{one.path}:{one.line}:{one.column}: {one.severity} {one.code}[{one.name}] {one.message}\n")
    for failure in result.failures:
        out.write(f"{failure.path}: failed: {failure.reason}\n")
    out.write(f"{summary(result)}\n")
