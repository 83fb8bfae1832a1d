"""The documentation's site: reports link to its pages, and its links lead where they do in the repository."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pages
import pytest

from memlint.cli.output import links
from memlint.engine.rules.rooms import load_rooms
from memlint.report.setting import Setting

base = pytest.importorskip("mkdocs.config.base")
structure = pytest.importorskip("mkdocs.structure.files")

CONFIG = base.load_config(str(pages.ROOT / "mkdocs.yml"))


@pytest.fixture(scope="module")
def hook() -> ModuleType:
    return pages.script(pages.ROOT / "docs" / "site_hook.py")


def files_of_the_site() -> Any:
    return CONFIG.plugins.on_files(structure.get_files(CONFIG), config=CONFIG)


def test_reports_link_to_the_pages_of_the_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    (address,) = re.findall(r'(?m)^Documentation = "(.*)"$', (pages.ROOT / "pyproject.toml").read_text("utf-8"))
    assert address == CONFIG.site_url
    urls = {file.abs_src_path: address + file.url for file in files_of_the_site().documentation_pages()}
    monkeypatch.setattr(links, "_site", lambda: address.rstrip("/"))
    rooms = {code: room for code, room in load_rooms(()).items() if room.page.is_file()}
    assert len(rooms) == len(pages.ROOMS)
    setting = Setting(page_of=lambda code: links.address(rooms[code]))
    for code, room in rooms.items():
        assert links.address(room) == setting.help_uri(code) == urls[str(room.page)]


@pytest.mark.parametrize(
    ("page", "name", "text", "shown"),
    [
        ("docs/ci.md", "ci.md", "[a](cli.md#output)", "[a](cli.md#output)"),
        ("docs/ci.md", "ci.md", "[a](#github)", "[a](#github)"),
        ("docs/ci.md", "ci.md", "[a](https://example.org/)", "[a](https://example.org/)"),
        ("README.md", "index.md", "[a](docs/ci.md)", "[a](ci.md)"),
        ("README.md", "index.md", "[a](fixtures/demo)", "[a](REPO/tree/main/fixtures/demo)"),
        ("docs/fixes.md", "fixes.md", "[a](../benchmarks/fixes.py)", "[a](REPO/blob/main/benchmarks/fixes.py)"),
        ("docs/fixes.md", "fixes.md", "[a](../SECURITY.md)", "[a](security.md)"),
        ("docs/rules.md", "rules.md", "[a](../rules/ROOM/README.md)", "[a](rules/ROOM/README.md)"),
        ("rules/ROOM/README.md", "rules/ROOM/README.md", "[a](../../docs/ci.md#x)", "[a](../../ci.md#x)"),
        ("docs/ci.md", "ci.md", "`[a](nowhere.md)`", "`[a](nowhere.md)`"),
        ("docs/ci.md", "ci.md", "```python fixed\n[a](b)\n```", "```python\n[a](b)\n```"),
        ("docs/ci.md", "ci.md", '```python title="a.py"\n```\n', '```python title="a.py"\n```\n'),
    ],
)
def test_links_are_those_of_the_site(hook: ModuleType, page: str, name: str, text: str, shown: str) -> None:
    room = pages.ROOMS[0].name
    places = {Path(file.abs_src_path): file.src_uri for file in files_of_the_site()}
    source = pages.ROOT / page.replace("ROOM", room)
    got = hook.rewritten(text.replace("ROOM", room), source, name.replace("ROOM", room), places, "REPO")
    assert got == shown.replace("ROOM", room)


def test_a_link_that_leads_nowhere_ends_the_build(hook: ModuleType) -> None:
    with pytest.raises(Exception, match="the link to nowhere"):
        hook.rewritten("[a](nowhere.md)", pages.ROOT / "docs/ci.md", "ci.md", {}, "REPO")
