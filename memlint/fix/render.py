"""From a plan to a `memlint.finding.Fix`: text edits on the file as it is."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Protocol

from memlint.finding import Edit, Fix, Span
from memlint.fix.plan import After, Change, Plan, Replace
from memlint.fix.text import Text
from memlint.flow.events import Site
from memlint.project import Source


class Places(Protocol):
    """Where sites are in their files."""

    def extent(self, site: Site) -> Span: ...


def render(plan: Plan, places: Places, sources: Mapping[str, Source]) -> Fix | None:
    """The plan as edits; None where it belongs into a file that is not linted, or that nobody may write to."""
    edits: list[Edit] = []
    for change in plan.changes:
        if not sources[change.site.path].linted:
            return None
        edits += _edits(change, places, Text(sources[change.site.path].text))
    title = f"{plan.title} (unsafe: {plan.doubt})" if plan.doubt else plan.title
    return Fix("display" if plan.display else "unsafe" if plan.doubt else "safe", title, tuple(edits))


def _edits(change: Change, places: Places, text: Text) -> list[Edit]:
    span = places.extent(change.site)
    match change:
        case After(site, suffix):
            return [Edit(site.path, at, written) for at, written in _behind(text, span, suffix)]
        case Replace(site, content):
            return [Edit(site.path, span, content)]


def _behind(text: Text, span: Span, suffix: str) -> list[tuple[Span, str]]:
    """A suffix behind an expression, which gets parentheses where it binds less tightly than a call."""
    if _is_primary(text[span]):
        return [(_end(span), suffix)]
    grouped = text.grouped(span)
    if grouped is not None:
        return [(_end(grouped), suffix)]
    return [(_start(span), "("), (_end(span), f"){suffix}")]


def _is_primary(code: str) -> bool:
    """Whether ``code.x`` means the attribute of all of it."""
    try:
        node = ast.parse(f"({code})", mode="eval").body
    except (SyntaxError, ValueError):
        return False
    return isinstance(node, ast.Name | ast.Attribute | ast.Call | ast.Subscript | ast.List | ast.Dict | ast.ListComp)


def _start(span: Span) -> Span:
    return Span(span.line, span.column, span.line, span.column)


def _end(span: Span) -> Span:
    return Span(span.end_line, span.end_column, span.end_line, span.end_column)
