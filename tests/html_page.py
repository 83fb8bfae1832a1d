"""Reads HTML pages, and finds a browser to open them in."""

from __future__ import annotations

import html.parser
import shutil

import pytest


class Reader(html.parser.HTMLParser):
    """Notes elements, and the text that is shown."""

    VOID = ("meta", "line", "path", "rect")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in self.VOID or tag == "rect":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data

    def with_class(self, name: str) -> list[dict[str, str | None]]:
        """The attributes of the elements of a class."""
        return [attributes for _, attributes in self.seen if name in (attributes.get("class") or "").split()]


def read(text: str) -> Reader:
    reader = Reader()
    reader.feed(text)
    reader.close()
    assert reader.open == [], "every element is closed"
    return reader


def browser() -> str:
    """A Chromium; the test is skipped where there is none."""
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        pytest.skip("no Chromium here")
    return found
