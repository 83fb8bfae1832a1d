"""The longer programs under fixtures/: the same markers as on the pages.

``fixtures/memNNN_name/x.py`` is a program of one file; each folder of ``fixtures/projects`` is one of several.
``fixtures/demo`` has no markers, since the README shows it as it is.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pages
import pytest
from programs import assert_as_marked, findings, lint

FIXTURES = pages.ROOT / "fixtures"
ROOM_NAMES = {room.name for room in pages.ROOMS}


def _programs() -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for folder in sorted(path for path in FIXTURES.iterdir() if path.name[:6].upper() in _codes()):
        for file in sorted(folder.glob("*.py")):
            found[f"{folder.name}/{file.stem}"] = {file.name: file.read_text(encoding="utf-8")}
    for folder in sorted((FIXTURES / "projects").iterdir()):
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


#: the bugs of the demo: where they are, and what is said of each
DEMO = {
    ("engine.py", "losses.update(loss, x.size(0))", "MEM101", "warning"),
    ("evaluate.py", "logits = model(x.to(device))", "MEM201", "error"),
    ("evaluate.py", "outputs.append(logits)", "MEM102", "note"),
    ("model.py", "self.mean = (1 - self.momentum) * self.mean + self.momentum * mean", "MEM103", "note"),
}


def test_the_demo_shows_its_bugs_and_nothing_else(tmp_path: Path) -> None:
    files = {file.name: file.read_text(encoding="utf-8") for file in (FIXTURES / "demo").glob("*.py")}
    found = findings(tmp_path, files)
    places = [(Path(one.path).name, one.line, one.code, one.severity) for one in found]
    assert {(name, files[name].splitlines()[line - 1].strip(), *said) for name, line, *said in places} == DEMO
