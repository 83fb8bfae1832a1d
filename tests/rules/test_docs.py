"""The pages of docs/ name rules that are there, and give each item an answer."""

from __future__ import annotations

import re
from pathlib import Path

import pages
import pytest

DOCS = pages.ROOT / "docs"
_LINK = re.compile(r"\[(MEM\d{3})\]\(\.\./(rules/[a-z0-9_]+)/README\.md\)")


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.stem)
def test_links_to_rules_lead_to_their_pages(page: Path) -> None:
    rooms = {f"rules/{room.name}": room.name[:6].upper() for room in pages.ROOMS}
    assert [link for link in _LINK.findall(page.read_text("utf-8")) if rooms.get(link[1]) != link[0]] == []


def test_each_smell_has_an_answer() -> None:
    rows = [line for line in (DOCS / "smells.md").read_text("utf-8").splitlines() if line.startswith("| ")]
    items = [row for row in rows if not row.startswith("| what the documentation says")]
    answers = ("](../rules/", "**not statically visible**", "**out of scope**", "no rule so far")
    assert items and [row for row in items if not any(answer in row.split("|")[2] for answer in answers)] == []
