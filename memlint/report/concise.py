"""One line per finding."""

from __future__ import annotations

from memlint.finding import Result, shown_place
from memlint.printable import printable
from memlint.report.facts import rule_of, shown
from memlint.report.lines import Lines
from memlint.report.setting import Setting
from memlint.report.summary import offer, summary


def render(result: Result, lines: Lines, setting: Setting) -> str:
    """``path:line:column: severity CODE[name] message``, ``[*]`` before messages that --fix can fix, and the
    summary."""
    rows, marked = [], False
    for one in shown(result):
        mark = "[*] " if result.is_fixable(one) else ""
        marked = marked or bool(mark)
        where = shown_place(one)
        rows.append(printable(f"{where}: {one.severity} {rule_of(one)} {mark}{one.message}"))
    rows += [printable(f"{failure.path}: failed: {failure.reason}") for failure in result.failures]
    rows.append(summary(result))
    if said := offer(result):
        rows.append(f"{'[*] ' if marked else ''}{said}")
    return "".join(f"{row}\n" for row in rows)
