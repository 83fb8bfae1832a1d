"""Writes a program into a folder, lints it through the public API, and compares findings with markers."""

from __future__ import annotations

from pathlib import Path

from pages import Mark, Marks, marks

import memlint
from memlint.finding import Confidence, Finding
from memlint.wording import MOST


def findings(folder: Path, files: dict[str, str], least: Confidence = "medium") -> list[Finding]:
    """The findings of a program; nothing may fail to be read."""
    for path, text in {"pyproject.toml": "", **files}.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    result = memlint.lint([folder], isolated=True, preview=True, min_confidence=least)
    assert not result.failures, result.failures
    return [finding for finding in result.findings if finding.suppressed is None]


def lint(folder: Path, files: dict[str, str]) -> set[Mark]:
    """The findings of a program as (path, line, code)."""
    folder = folder.resolve()
    found = findings(folder, files)
    assert_well_worded(found)
    return {(_inside(folder, one.path), one.line, one.code) for one in found}


def _inside(folder: Path, path: str) -> str:
    return (Path.cwd() / path).resolve().relative_to(folder).as_posix()


def assert_well_worded(found: list[Finding]) -> None:
    """Messages are short enough; messages and help are sentences without a period, with whole names."""
    assert [one.message for one in found if len(one.message) > MOST] == []
    texts = [text for one in found for text in (one.message, one.help)]
    assert [text for text in texts if text.count("`") % 2 or text.endswith((".", ":", " "))] == []


def assert_as_marked(found: set[Mark], files: dict[str, str], expected: Marks | None = None) -> None:
    expected = expected or marks(files)
    lines: list[str] = []
    for title, group in (
        ("missing", expected.errors - found),
        ("unexpected", found - expected.reported_today - expected.todo_errors),
        ("found at last: make the todo-error an error", found & expected.todo_errors),
        ("silent at last: delete the todo-ok", expected.todo_oks - found),
    ):
        lines += [f"{title}: {path}:{line} {code}  {_line(files, path, line)}" for path, line, code in sorted(group)]
    assert not lines, "\n".join(["", *lines])


def _line(files: dict[str, str], path: str, line: int) -> str:
    return files[path].splitlines()[line - 1].strip() if path in files else ""
