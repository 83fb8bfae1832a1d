"""Rule links on terminals that show them, and nowhere else."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest

from memlint.cli.output import links
from memlint.engine.rules.rooms import load_rooms
from memlint.finding import Finding, Growth, Result, Summary
from memlint.report import writer
from memlint.report.lines import Lines
from memlint.report.links import shows_links
from memlint.report.setting import Setting

FINDING = Finding(
    code="MEM101", name="loss-accumulation", severity="warning", confidence="high", message="It grows.", path="a.py",
    line=1, column=1, end_line=1, end_column=2, growth=Growth("host", "per-iteration"),
)  # fmt: skip
RESULT = Result((FINDING,), (), (), Summary(1, 0, 0, 1, 0, 0.1))
LINK = "\x1b]8;"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _plain(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "TERM_PROGRAM", "KITTY_WINDOW_ID", "WT_SESSION", "KONSOLE_VERSION", "DOMTERM", "VTE_VERSION", "FORCE_HYPERLINK",
        "NO_COLOR", "FORCE_COLOR",
    ):  # fmt: skip
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")


@pytest.mark.parametrize(
    ("variables", "shown"),
    [
        ({}, False),
        ({"TERM_PROGRAM": "vscode"}, True),
        ({"TERM_PROGRAM": "Apple_Terminal"}, False),
        ({"TERM": "xterm-kitty"}, True),
        ({"VTE_VERSION": "6800"}, True),
        ({"VTE_VERSION": "4900"}, False),
        ({"WT_SESSION": "x"}, True),
        ({"WT_SESSION": "x", "TERM": "screen-256color"}, False),
        ({"WT_SESSION": "x", "NO_COLOR": "1"}, False),
        ({"WT_SESSION": "x", "TERM": "dumb"}, False),
        ({"WT_SESSION": "x", "FORCE_HYPERLINK": "0"}, False),
        ({"FORCE_HYPERLINK": "1"}, True),
    ],
)
def test_links_are_for_terminals_that_show_them(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], shown: bool
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert shows_links(Terminal()) == shown
    assert not shows_links(io.StringIO())


@pytest.mark.parametrize("terminal", [True, False])
def test_the_code_of_a_finding_links_to_its_page(monkeypatch: pytest.MonkeyPatch, terminal: bool) -> None:
    monkeypatch.setenv("FORCE_HYPERLINK", "1")
    monkeypatch.setenv("FORCE_COLOR", "1")
    out = Terminal() if terminal else io.StringIO()
    setting = Setting(page_of=lambda code: f"https://example.org/{code}")
    writer("text", setting)(RESULT, Lines(lambda path: None), out)
    assert "MEM101[loss-accumulation]" in out.getvalue()
    assert (LINK in out.getvalue()) == ("https://example.org/MEM101" in out.getvalue()) == terminal


def test_a_page_is_on_the_site_or_on_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    room = load_rooms(())["MEM101"]
    monkeypatch.setattr(links, "_site", lambda: "")
    address = links.address(room)
    assert address is not None and address.startswith("file:///")
    assert Path(address.removeprefix("file://")).is_file() or os.name == "nt"
    monkeypatch.setattr(links, "_site", lambda: "https://docs.example.org")
    assert links.address(room) == f"https://docs.example.org/rules/{room.folder.name}/"
