"""The source of a finding and its trace, as HTML."""

from __future__ import annotations

from memlint.finding import Finding, shown_place
from memlint.report.lines import Lines
from memlint.report.page import element, esc, prose

#: context lines before and after a finding
_AROUND = 2
#: the most lines of a statement
_LONGEST = 12


def excerpt(finding: Finding, lines: Lines) -> str:
    """The finding's lines, marked, and some around them."""
    last = min(finding.end_line, finding.line + _LONGEST)
    gutter = len(str(last + _AROUND))
    rows: list[str] = []
    for line in range(finding.line - _AROUND, last + _AROUND + 1):
        source = lines.get(finding.path, line, finding.cell)
        if source is None:
            continue
        start = finding.column - 1 if line == finding.line else len(source) - len(source.lstrip())
        end = finding.end_column - 1 if line == finding.end_line else len(source)
        shown = esc(source)
        if finding.line <= line <= last:
            shown = f"{esc(source[:start])}<mark>{esc(source[start:end])}</mark>{esc(source[end:])}"
        rows.append(f'<span class="no">{line:>{gutter}}  </span>{shown}')
    return element("pre", "\n".join(rows)) if rows else ""


def trace(finding: Finding, lines: Lines) -> str:
    """The steps of the trace, each with its line of source."""
    steps: list[str] = []
    for step in finding.trace:
        source = lines.get(step.path, step.line, step.cell)
        shown = "" if source is None or not source.strip() else element("pre", esc(source.strip()))
        place = element("code", esc(shown_place(step, column=False)))
        steps.append(element("li", f"{place}: {prose(step.message)}{shown}"))
    return element("ol", "".join(steps), class_="trace") if steps else ""
