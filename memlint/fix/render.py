"""From a plan to a `memlint.finding.Fix`: text edits on the file as it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from memlint.finding import Edit, Fix, Span
from memlint.fix.plan import After, Change, Plan, Replace
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
        edits += _edits(change, places)
    title = f"{plan.title} (unsafe: {plan.doubt})" if plan.doubt else plan.title
    return Fix("display" if plan.display else "unsafe" if plan.doubt else "safe", title, tuple(edits))


def _edits(change: Change, places: Places) -> list[Edit]:
    span = places.extent(change.site)
    match change:
        case After(site, text):
            return [Edit(site.path, _end(span), text)]
        case Replace(site, text):
            return [Edit(site.path, span, text)]


def _end(span: Span) -> Span:
    return Span(span.end_line, span.end_column, span.end_line, span.end_column)
