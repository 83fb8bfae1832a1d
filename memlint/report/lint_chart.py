"""Numbers of findings as bars of inline SVG in a table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import get_args

from memlint.finding import Severity
from memlint.report.page import element, esc, void

SEVERITIES: tuple[Severity, ...] = get_args(Severity)
#: the most bars of a chart
_MOST = 20


def chart(title: str, rows: Iterable[tuple[str, Severity]], links: dict[str, str]) -> str:
    """A chart of the most frequent labels, each with a bar stacked by severity. ``links``: addresses by label."""
    counts: dict[str, dict[Severity, int]] = {}
    for label, severity in rows:
        counted = counts.setdefault(label, dict.fromkeys(SEVERITIES, 0))
        counted[severity] += 1
    ordered = sorted(counts.items(), key=lambda row: (-sum(row[1].values()), row[0]))
    most = max((sum(counted.values()) for counted in counts.values()), default=1)
    body = "".join(_row(label, counted, most, links.get(label)) for label, counted in ordered[:_MOST])
    more = len(ordered) - _MOST
    rest = element("p", f"and {more:,} more", class_="soft") if more > 0 else ""
    return element("div", element("h2", esc(title)) + element("table", body, class_="chart") + rest)


def key() -> str:
    """The legend of the colours."""
    rows = (element("li", element("span", "", class_=f"key {one}") + one) for one in SEVERITIES)
    return element("ul", "".join(rows), class_="keys")


def _row(label: str, counted: dict[Severity, int], most: int, link: str | None) -> str:
    total, at, bars = sum(counted.values()), 0.0, []
    for severity, count in counted.items():
        if count:
            width = 100 * count / most
            bars.append(void("rect", x=f"{at:g}", y=0, width=f"{width:g}", height=10, class_=severity))
            at += width
    said = ", ".join(f"{count:,} {severity}" for severity, count in counted.items() if count)
    svg = element(
        "svg",
        element("title", esc(said)) + "".join(bars),
        viewBox="0 0 100 10",
        preserveAspectRatio="none",
        role="img",
        aria_label=f"{label}: {said}",
    )
    name = esc(label) if link is None else element("a", esc(label), href=link)
    cells = element("th", name, scope="row") + element("td", svg) + element("td", f"{total:,}", class_="number")
    return element("tr", cells)
