"""One line a finding."""

from __future__ import annotations

from typing import TextIO

from memlint.finding import Result
from memlint.printable import printable
from memlint.report.lines import Lines
from memlint.report.summary import offer, summary


def write(result: Result, lines: Lines, out: TextIO) -> None:
    """``path:line:column: severity CODE[name] message``, ``[*]`` before messages that --fix can mend, and the
    summary."""
    marked = False
    for one in result.findings:
        if one.suppressed is None:
            mark = "[*] " if result.is_fixable(one) else ""
            marked = marked or bool(mark)
            place = f"{one.path}:{one.line}:{one.column}"
            out.write(printable(f"{place}: {one.severity} {one.code}[{one.name}] {mark}{one.message}") + "\n")
    for failure in result.failures:
        out.write(printable(f"{failure.path}: failed: {failure.reason}") + "\n")
    out.write(f"{summary(result)}\n")
    if said := offer(result):
        out.write(f"{'[*] ' if marked else ''}{said}\n")
