"""What every room must look like."""

from __future__ import annotations

import ast
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pages
import pytest

from memlint.sdk import Facts, Meta

ROOMS = pytest.mark.parametrize("room", pages.ROOMS, ids=lambda room: room.name)


def load(room: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"room_{room.name}", room / "rule.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@ROOMS
def test_meta_matches_the_folder(room: Path) -> None:
    meta = load(room).META
    assert isinstance(meta, Meta)
    assert room.name == f"{meta.code}_{meta.name}".lower().replace("-", "_")
    assert meta.summary and "\n" not in meta.summary


@ROOMS
def test_page_has_the_fixed_headings(room: Path) -> None:
    page = (room / "README.md").read_text(encoding="utf-8")
    meta = load(room).META
    title, summary, *_ = page.split("\n\n")
    assert (title, " ".join(summary.split())) == (f"# {meta.name} ({meta.code})", meta.summary)
    parts = pages.sections(page)
    assert tuple(parts) == pages.HEADINGS
    assert all(text.strip() for text in parts.values())


@ROOMS
def test_rule_is_small_and_imports_the_sdk_alone(room: Path) -> None:
    source = (room / "rule.py").read_text(encoding="utf-8")
    assert len(source.splitlines()) < 150
    for node in ast.walk(ast.parse(source)):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            names = [node.module or "."]
        for name in names:
            assert name == "memlint.sdk" or name.split(".")[0] in sys.stdlib_module_names, name


@ROOMS
def test_no_events_no_findings(room: Path) -> None:
    assert list(load(room).check(Facts(()))) == []


def test_codes_and_names_are_unique() -> None:
    metas = [load(room).META for room in pages.ROOMS]
    assert len({meta.code for meta in metas}) == len({meta.name for meta in metas}) == len(metas)


@ROOMS
def test_enough_examples(room: Path) -> None:
    if room.name.startswith("mem0"):
        return
    found = pages.examples(room.name, (room / "README.md").read_text(encoding="utf-8"))
    least = 10 if room.name[:6] in ("mem101", "mem102", "mem201") else 6
    assert sum(example.section == "Bad" for example in found) >= least
    assert sum(example.section == "Good" for example in found) >= least
