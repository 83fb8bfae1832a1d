"""GitHub's workflow commands, which annotate lines."""

from __future__ import annotations

import os
import re

from memlint.finding import Finding, Result, Severity, shown_place
from memlint.printable import printable
from memlint.report.facts import details, rule_of, shown
from memlint.report.lines import Lines
from memlint.report.setting import Setting

_KINDS: dict[Severity, str] = {"error": "error", "warning": "warning", "note": "notice"}
#: what a runner takes for a command: `::` at the start of a line, or `##[` (the old syntax) anywhere
_COMMAND = re.compile(r"(?m)^\s*::|##\[")


def render(result: Result, lines: Lines, setting: Setting) -> str:
    """A command for each finding, and for each file that could not be analysed."""
    rows = [_annotation(one, setting) for one in shown(result)]
    for failure in result.failures:
        where = {"title": "memlint", "file": setting.from_root(failure.path)}
        rows.append(_command("error", where, f"{failure.path}: failed: {failure.reason}"))
    return "".join(f"{row}\n" for row in rows)


def guarded(text: str) -> str:
    """A report as a job can print it: if a name or a line of source in it looks like a command, the text is put between
    tokens that stop the runner from executing commands."""
    if _COMMAND.search(text.replace("\r", "\n")) is None:  # the runner ends lines at both
        return text
    token = os.urandom(16).hex()
    return f"::stop-commands::{token}\n{text}::{token}::\n"


def _annotation(one: Finding, setting: Setting) -> str:
    path = setting.from_root(one.path)
    where = {"title": rule_of(one), "file": path, "line": str(one.line), "col": str(one.column)}
    # GitHub rejects columns if the lines differ
    where |= {"endLine": str(one.line), "endColumn": str(one.end_column)} if one.end_line == one.line else {}
    # the log shows nothing but the message
    return _command(_KINDS[one.severity], where, f"{shown_place(one, path)}: {details(one, setting)}")


def _command(kind: str, where: dict[str, str], message: str) -> str:
    properties = ",".join(f"{name}={_property(value)}" for name, value in where.items())
    return f"::{kind} {properties}::{_data(message)}"


def _data(text: str) -> str:
    clean = "\n".join(map(printable, text.split("\n")))
    return clean.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
