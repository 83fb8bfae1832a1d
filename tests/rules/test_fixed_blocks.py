"""The fixed programs of the pages are what fixing makes of them, and fixing them again changes nothing."""

from __future__ import annotations

from pathlib import Path

import pages
import pytest
from pages import Example

import memlint
from memlint.engine.fixing.fixing import run_and_fix
from memlint.engine.options import Options
from memlint.engine.rules.selection import Overrides
from memlint.finding import Fix, Safety

FIXED = [example for example in pages.all_examples() if example.fixed]
FIXABLE = ("mem101", "mem102", "mem103", "mem104", "mem201", "mem202", "mem203", "mem301", "mem302")


def _fixed(folder: Path, *, unsafe: bool) -> dict[str, str]:
    """The files of a program after fixing."""
    options = Options(cwd=folder, isolated=True, overrides=Overrides(preview=True), unsafe_fixes=unsafe)
    done = run_and_fix([str(folder)], options)
    assert not done.refused and not done.outcome.result.failures
    return {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*.py")}


def _write(folder: Path, files: dict[str, str]) -> dict[str, str]:
    unmarked = {path: pages.unmarked(text) for path, text in files.items()}
    for path, text in {"pyproject.toml": "", **unmarked}.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return unmarked


@pytest.mark.parametrize("example", FIXED, ids=lambda example: example.id)
def test_fixing_gives_what_the_page_says(example: Example, tmp_path: Path) -> None:
    before = _write(tmp_path, example.files)
    assert not example.safe or example.safe == example.fixed.keys()
    after = _fixed(tmp_path, unsafe=not example.safe)
    assert after == before | example.fixed
    assert _fixed(tmp_path, unsafe=not example.safe) == after


@pytest.mark.parametrize("room", FIXABLE)
def test_a_page_shows_fixes_of_each_safety(room: str) -> None:
    shown = [example for example in FIXED if example.room.startswith(room)]
    assert len(shown) >= 2
    if room not in ("mem104", "mem203", "mem204", "mem302"):  # whose fixes are never safe
        assert {bool(example.safe) for example in shown} == {True, False}


def safeties(example: Example, folder: Path) -> set[Safety]:
    _write(folder, example.files)
    own = example.room[:6].upper()
    fixes: list[Fix | None] = [
        one.fix for one in memlint.lint([folder], isolated=True, preview=True).findings if one.code == own
    ]
    return {fix.safety for fix in fixes if fix is not None}


@pytest.mark.parametrize("example", FIXED, ids=lambda example: example.id)
def test_the_safety_is_that_of_the_rule(example: Example, tmp_path: Path) -> None:
    assert ("safe" in safeties(example, tmp_path)) == bool(example.safe)
