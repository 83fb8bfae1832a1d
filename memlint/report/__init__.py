"""A result as text for people or as JSON for programs. Knows no rule."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Literal, TextIO

from memlint.finding import Result
from memlint.report.lines import Lines

Format = Literal["text", "concise", "json"]
FORMATS: tuple[Format, ...] = ("text", "concise", "json")

#: writes a result; what a file says is asked of `Lines`
Writer = Callable[[Result, Lines, TextIO], None]


def writer(name: Format) -> Writer:
    """The function that writes this format; only it is imported (rich is slow to import)."""
    if name == "text":
        return _text
    if name == "concise":
        from memlint.report.concise import write as concise

        return concise
    from memlint.report.as_json import write as as_json

    return as_json


def _text(result: Result, lines: Lines, out: TextIO) -> None:
    """Where nothing is shown or styled, the concise report says the same, and rich is not waited for."""
    shown = result.failures or any(finding.suppressed is None for finding in result.findings)
    if shown or out.isatty() or os.environ.get("FORCE_COLOR"):
        from memlint.report.text import write
    else:
        from memlint.report.concise import write
    write(result, lines, out)
