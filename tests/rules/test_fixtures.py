"""The longer programs under fixtures/: the same markers as on the pages.

``fixtures/memNNN_name/x.py`` is a program of one file; ``fixtures/demo`` and each folder of ``fixtures/projects`` are
programs of several.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pages
import pytest
from programs import assert_as_marked, lint

FIXTURES = pages.ROOT / "fixtures"
ROOM_NAMES = {room.name for room in pages.ROOMS}


def _programs() -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for folder in sorted(path for path in FIXTURES.iterdir() if path.name[:6].upper() in _codes()):
        for file in sorted(folder.glob("*.py")):
            found[f"{folder.name}/{file.stem}"] = {file.name: file.read_text(encoding="utf-8")}
    for folder in [FIXTURES / "demo", *sorted((FIXTURES / "projects").iterdir())]:
        files = sorted(file for file in folder.rglob("*.py") if "__pycache__" not in file.parts)
        found[folder.name] = {file.relative_to(folder).as_posix(): file.read_text(encoding="utf-8") for file in files}
    return found


def _codes() -> set[str]:
    return {name[:6].upper() for name in ROOM_NAMES}


PROGRAMS = _programs()


@pytest.mark.parametrize("name", PROGRAMS)
def test_fixture(name: str, tmp_path: Path) -> None:
    assert_as_marked(lint(tmp_path, PROGRAMS[name]), PROGRAMS[name])


@pytest.mark.parametrize("name", PROGRAMS)
def test_fixture_is_well_formed(name: str) -> None:
    files = PROGRAMS[name]
    pages.marks(files)
    for path, text in files.items():
        ast.parse(text, path)
    if "/" in name:
        assert name.split("/")[0] in ROOM_NAMES


def test_the_demo_shows_findings_of_several_rules() -> None:
    codes = {code for _, _, code in pages.marks(PROGRAMS["demo"]).errors}
    assert codes >= {"MEM101", "MEM102", "MEM103", "MEM201"}
