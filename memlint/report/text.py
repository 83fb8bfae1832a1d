"""The text report: each finding with its source, its trace and its help."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import TextIO

from rich.console import Console
from rich.style import Style
from rich.text import Text

from memlint.finding import Finding, Result, Severity, TraceStep, shown_place
from memlint.printable import printable
from memlint.report.facts import facts, rule_of, shown
from memlint.report.lines import Lines
from memlint.report.links import shows_links
from memlint.report.setting import Setting
from memlint.report.summary import offer, summary

_STYLES: dict[Severity, str] = {"error": "bold red", "warning": "bold yellow", "note": "bold cyan"}
#: cells of a line in a pipe, where text is not wrapped: longer source lines are cropped around the finding
_WIDEST = 160
_NARROWEST = 30
_TAB = "    "


def console(out: TextIO) -> Console:
    """A console for ``out``: colour on a terminal only, unless NO_COLOR or FORCE_COLOR say otherwise."""
    forced = bool(os.environ.get("FORCE_COLOR"))
    colour = forced or (out.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb")
    width = max(shutil.get_terminal_size().columns, _NARROWEST) if out.isatty() else _WIDEST
    return Console(
        # in a notebook's kernel, rich would display HTML instead of writing to `file`
        force_jupyter=False,
        file=out,
        force_terminal=colour,
        no_color=not colour,
        highlight=False,
        markup=False,
        emoji=False,
        width=width,
        legacy_windows=False,
    )


def write(result: Result, lines: Lines, out: TextIO, setting: Setting | None = None) -> None:
    """Every finding that is not suppressed with its source, trace and advice; failures; the summary."""
    target = console(out)
    wrap = target.width if out.isatty() else None
    link = setting.page_of if setting is not None and shows_links(out) else lambda code: None
    for finding in shown(result):
        for line in _finding(finding, lines, wrap, target.width, link(finding.code)):
            target.print(line, soft_wrap=True)
        target.print()
    for failure in result.failures:
        said = Text.assemble((f"{failure.path}: ", "bold"), ("failed: ", "bold red"), failure.reason)
        target.print(wrapped(said, wrap, 2), soft_wrap=True)
    target.print(Text(summary(result), "bold"), soft_wrap=True)
    if offered := offer(result):
        target.print(offered, soft_wrap=True)


def _finding(finding: Finding, lines: Lines, wrap: int | None, width: int, link: str | None) -> Iterator[Text]:
    head = Text.assemble(
        (f"{shown_place(finding)}: ", "bold"),
        (finding.severity, _STYLES[finding.severity]),
        " ",
        (rule_of(finding), Style(bold=True, link=link)),
        " ",
        finding.message,
        (f" ({finding.confidence} confidence)", "dim"),
    )
    yield wrapped(head, wrap, 2)
    gutter = len(str(max(finding.line, *(step.line for step in finding.trace), 1)))
    yield from _excerpt(finding, lines, gutter, width)
    for number, step in enumerate(finding.trace, 1):
        yield from _step(number, step, lines, gutter, wrap, width)
    for word, said in facts(finding):
        row = Text.assemble((" " * gutter + " = ", "blue"), (f"{word}: ", "bold green"), said)
        yield wrapped(row, wrap, gutter + 3)


def _excerpt(finding: Finding, lines: Lines, gutter: int, width: int) -> Iterator[Text]:
    """The line before the finding, and its first line, underlined; nothing if the source is unknown."""
    source = lines.get(finding.path, finding.line, finding.cell)
    if source is None:
        return
    before = lines.get(finding.path, finding.line - 1, finding.cell)
    yield _bar(gutter)
    if before is not None and before.strip():
        yield _source(finding.line - 1, before, gutter, width, 0)[0]
    last = finding.end_column if finding.end_line == finding.line else len(source) + 1
    yield from _underlined(finding.line, source, finding.column, last, gutter, width, _STYLES[finding.severity])


def _underlined(line: int, source: str, column: int, end: int, gutter: int, width: int, style: str) -> Iterator[Text]:
    start = _cells(source[: column - 1])
    length = max(_cells(source[column - 1 : end - 1].rstrip()), 1)
    text, shift = _source(line, source, gutter, width, start)
    yield text
    room = max(width - gutter - 3 - (start - shift), 1)
    yield _bar(gutter).append(" " * (start - shift)).append("^" * min(length, room), style)


def _step(number: int, step: TraceStep, lines: Lines, gutter: int, wrap: int | None, width: int) -> Iterator[Text]:
    where = f"{shown_place(step)}: "
    yield wrapped(
        Text.assemble((" " * gutter + " = ", "blue"), (f"{number}. ", "bold"), (where, "bold"), step.message),
        wrap,
        gutter + 6,
    )
    source = lines.get(step.path, step.line, step.cell)
    if source is not None and source.strip():
        yield _source(step.line, source, gutter, width, 0)[0]


def _source(line: int, source: str, gutter: int, width: int, keep: int) -> tuple[Text, int]:
    """A numbered line of source, cropped to ``width`` so that cell ``keep`` is visible, and the cells cut off on its
    left."""
    expanded = source.replace("\t", _TAB).rstrip()
    room = max(width - gutter - 3, 10)
    shift = 0
    if len(expanded) > room:
        shift = max(0, min(keep - room // 3, len(expanded) - room))
        cut = expanded[shift : shift + room]
        if shift:
            cut = "…" + cut[1:]
        if shift + room < len(expanded):
            cut = cut[:-1] + "…"
        expanded = cut
    return Text.assemble((f"{line:>{gutter}} | ", "blue"), _printable(expanded)), shift


def _bar(gutter: int) -> Text:
    return Text(" " * gutter + " | ", "blue")


def _cells(source: str) -> int:
    return len(source.replace("\t", _TAB))


def _printable(text: str) -> str:
    """``text`` with a dot for each control character, which could steer the terminal."""
    return "".join(char if char.isprintable() else "·" for char in text)


def clean(text: Text) -> Text:
    """A line without control characters. One that had some loses its colours."""
    plain = printable(text.plain)
    return text if plain == text.plain else Text(plain)


def wrapped(text: Text, width: int | None, indent: int) -> Text:
    """``text`` broken at ``width`` cells with later lines indented; unbroken without a width.

    Long words such as paths are never cut: a terminal breaks them itself, and they can be copied.
    """
    text = clean(text)
    if width is None or text.cell_len <= width:
        return text
    words = text.split(" ", include_separator=False)
    result, used = Text(), 0
    for position, word in enumerate(words):
        if position and used + 1 + word.cell_len > width and used > indent:
            result.append("\n" + " " * indent)
            used = indent
        elif position:
            result.append(" ")
            used += 1
        result.append_text(word)
        used += word.cell_len
    return result
