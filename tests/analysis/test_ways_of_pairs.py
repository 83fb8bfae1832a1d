"""Programs that a rule has nothing to say of, each beside one that differs by a few lines and that it must find.

``fixtures/ways/pairs.txt`` holds them as differences, one a section, with the rule's code in its title: lines that
begin with ``-`` are only in the program that is left alone, lines with ``+`` only in its twin that is found.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint

PAIRS = Path(__file__).parents[2] / "fixtures/ways/pairs.txt"


def sections() -> dict[str, tuple[str, bool, list[str]]]:
    """(code, lines) of each section, by its name."""
    found = {}
    for section in f"\n{PAIRS.read_text('utf-8')}".split("\n== ")[1:]:
        title, *lines = section.splitlines()
        name, code, *severity = title.split()
        found[name] = code, severity == ["note"], lines
    return found


def program(lines: list[str], side: str) -> str:
    """One of the two programs of a section: ``-`` or ``+``."""
    kept = [line for line in lines if line[:1] not in ("-", "+") or line[:1] == side]
    return "\n".join(line[1:] if line[:1] == side else line for line in kept) + "\n"


def said(folder: Path, text: str, notes: bool) -> set[str]:
    """The codes of what is no note, or of all."""
    (folder / "pyproject.toml").write_text("", encoding="utf-8")
    (folder / "program.py").write_text(text, encoding="utf-8")
    result = memlint.lint([folder], isolated=True)
    assert not result.failures
    return {one.code for one in result.findings if notes or one.severity != "note"}


@pytest.mark.parametrize("name", sections())
def test_what_costs_nothing_is_left_alone(name: str, tmp_path: Path) -> None:
    code, notes, lines = sections()[name]
    assert code not in said(tmp_path, program(lines, "-"), notes)


@pytest.mark.parametrize("name", sections())
def test_its_twin_is_found(name: str, tmp_path: Path) -> None:
    code, notes, lines = sections()[name]
    assert code in said(tmp_path, program(lines, "+"), notes)
