"""What is shown for the place of a finding: what it says, why, and the page of its rule."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from lsprotocol import types

from memlint.finding import Finding, Fix, shown_place
from memlint.lsp.diagnostics import Report, page_of, uri_of
from memlint.reading import read_text
from memlint.report.setting import brief

_CODE = re.compile(r"(`[^`]*`)")
_MARKUP = re.compile(r"[\\`*_\[\]<>#|~]")


def hover(report: Report, position: types.Position) -> types.Hover | None:
    """What is said of a place; None where nothing was found."""
    here = [
        (finding, shown.range)
        for finding, shown in zip(report.findings, report.diagnostics, strict=False)
        if is_inside(position, shown.range)
    ]
    if not here:
        return None
    said = [*(_said(finding, report.answer.paths) for finding, _ in here)]
    said += [_page(code) for code in dict.fromkeys(finding.code for finding, _ in here)]
    content = "\n\n---\n\n".join(filter(None, said))
    return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, content), here[0][1])


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
        lines.append(f"**Measured**: {finding.evidence.verdict}{_because(finding.evidence.reason)}")
    return "\n\n".join(lines)


def _because(reason: str) -> str:
    return f" ({plain(reason)})" if reason else ""


def _steps(finding: Finding, paths: Mapping[str, str]) -> Iterable[str]:
    for number, step in enumerate(finding.trace, 1):
        place, path = shown_place(step, column=False), paths.get(step.path)
        linked = path is not None and step.cell is None  # (an address of a cell is known to its editor alone)
        link = f"[{plain(place)}]({uri_of(path or '')}#L{step.line})" if linked else plain(place)
        yield f"{number}. {plain(step.message)} ({link})"


def _fix(fix: Fix) -> str:
    kind = {"safe": "Fix", "unsafe": "Unsafe fix", "display": "Alternative"}[fix.safety]
    return f"**{kind}**: {plain(fix.title)}{_because(fix.doubt or '')}"


def _page(code: str) -> str:
    page = page_of(code)
    try:
        return "" if page is None else brief(read_text(page))
    except OSError:
        return ""


def plain(text: str) -> str:
    """A text whose words are of the linted project: no markup but code between backticks."""
    parts = _CODE.split(text)
    return "".join(part if number % 2 else _MARKUP.sub(r"\\\g<0>", part) for number, part in enumerate(parts))
