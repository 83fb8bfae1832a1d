"""Hovers on findings: message, trace, and the rule's page."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from lsprotocol import types

from memlint.explanation import Explanation
from memlint.finding import Finding, Fix, shown_place
from memlint.lsp.diagnostics import Report, page_of, uri_of
from memlint.reading import read_text
from memlint.report.measured import said
from memlint.report.setting import brief

#: the most expressions around one position that are shown
MOST_VALUES = 3
_CODE = re.compile(r"(`[^`]*`)")
_MARKUP = re.compile(r"[\\`*_\[\]<>#|~]")


def hover(report: Report, position: types.Position, known: Explanation | None) -> types.Hover | None:
    """The hover at a position: its findings, and the ``known`` facts about values; None if there is nothing."""
    here = [
        (finding, shown.range)
        for finding, shown in zip(report.findings, report.diagnostics, strict=False)
        if is_inside(position, shown.range)
    ]
    parts = [_said(finding, report.answer.paths) for finding, _ in here]
    parts += [] if known is None else [_known(known)]
    parts += [_page(code) for code in dict.fromkeys(finding.code for finding, _ in here)]
    content = "\n\n---\n\n".join(filter(None, parts))
    if not content:
        return None
    return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, content), here[0][1] if here else None)


def has_finding(report: Report, position: types.Position) -> bool:
    """Whether there is a finding at a position."""
    shown = report.diagnostics[: len(report.findings)]
    return any(is_inside(position, one.range) for one in shown)


def _known(known: Explanation) -> str:
    """The facts of the analysis at a position, the smallest expression first; "" without an expression."""
    rows = []
    for statement in known.statements:
        values = sorted(statement.values, key=lambda value: len(value.expression))
        if not values:
            continue
        rows += [f"{_quoted(value.expression)}: {plain(value.text)}" for value in values[:MOST_VALUES]]
        context = [f"grad mode: {statement.grad_mode}: {statement.decided_by}"]
        context += [f"repeated by: {loop}" for loop in statement.loops]
        rows.append("\n".join(f"- {plain(row)}" for row in (*context, *statement.notes)))
    if rows:
        rows += ["\n".join(f"- {row}" for row in _silences(known))]
    return "\n\n".join(filter(None, rows))


def _quoted(code: str) -> str:
    """Code in backticks: two if it contains one."""
    return f"`` {code} ``" if "`" in code else f"`{code}`"


def _silences(known: Explanation) -> Iterable[str]:
    """Why rules do not report something on the line."""
    for rule in known.rules:
        if rule.status in ("dropped", "not shown") and rule.reasons:
            status = "not reported" if rule.status == "dropped" else "not shown"
            yield f"{rule.code} `{rule.name}` {status}: {plain(rule.reasons[0].text)}"


def is_inside(position: types.Position, place: types.Range) -> bool:
    at = (position.line, position.character)
    return (place.start.line, place.start.character) <= at <= (place.end.line, place.end.character)


def _said(finding: Finding, paths: Mapping[str, str]) -> str:
    head = f"**{finding.code}** `{finding.name}` ({finding.severity}, {finding.confidence} confidence)"
    lines = [head, plain(finding.message)]
    if finding.help:
        lines.append(f"**Help**: {plain(finding.help)}")
    if finding.trace:
        lines.append("\n".join(_steps(finding, paths)))
    fixes = [*([] if finding.fix is None else [finding.fix]), *finding.alternatives]
    if fixes:
        lines.append("\n".join(f"- {_fix(fix)}" for fix in fixes))
    if finding.evidence is not None:
        lines.append(f"**Measured**: {plain(said(finding.evidence))}")
    return "\n\n".join(lines)


def _steps(finding: Finding, paths: Mapping[str, str]) -> Iterable[str]:
    for number, step in enumerate(finding.trace, 1):
        place, path = shown_place(step, column=False), paths.get(step.path)
        linked = path is not None and step.cell is None  # only the editor knows a cell's address
        link = f"[{plain(place)}]({uri_of(path or '')}#L{step.line})" if linked else plain(place)
        yield f"{number}. {plain(step.message)} ({link})"


def _fix(fix: Fix) -> str:
    kind = {"safe": "Fix", "unsafe": "Unsafe fix", "display": "Alternative"}[fix.safety]
    doubt = f" ({plain(fix.doubt)})" if fix.doubt else ""
    return f"**{kind}**: {plain(fix.title)}{doubt}"


def _page(code: str) -> str:
    page = page_of(code)
    try:
        return "" if page is None else brief(read_text(page))
    except OSError:
        return ""


def plain(text: str) -> str:
    """Text from the linted project with its Markdown escaped, except code in backticks."""
    parts = _CODE.split(text)
    return "".join(part if number % 2 else _MARKUP.sub(r"\\\g<0>", part) for number, part in enumerate(parts))
