"""Baselines, changed lines and suppressions in notebooks."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from memlint.cli import main

Toy = Callable[..., Path]
Capture = pytest.CaptureFixture[str]


def notebook(*cells: str, outputs: int = 0) -> str:
    rows = [
        {
            "cell_type": "code",
            "metadata": {},
            "execution_count": outputs,
            "outputs": [],
            "source": cell.splitlines(True),
        }
        for cell in cells
    ]
    words = {"cell_type": "markdown", "metadata": {}, "source": ["Words."]}
    return json.dumps({"cells": [words, *rows], "metadata": {}, "nbformat": 4, "nbformat_minor": 4}, indent=1) + "\n"


BOOK = notebook("x = 1\nleak(1)\n", "# words\nleak(2)\nleak(3)")


def reported(capsys: Capture, *arguments: str) -> list[tuple[int, int]]:
    main([".", *arguments, "--output-format", "json"])
    rows = json.loads(capsys.readouterr().out)["findings"]
    return [(row["cell"], row["line"]) for row in rows if row["suppressed"] is None]


def test_a_baseline_knows_a_statement_in_whatever_cell_it_is(toy: Toy, capsys: Capture) -> None:
    root = toy({"book.ipynb": BOOK})
    assert reported(capsys, "--write-baseline", "base.json") == []
    entries = json.loads((root / "base.json").read_text())["findings"]
    assert [entry["source"] for entry in entries] == ["leak(1)", "leak(2)", "leak(3)"]
    (root / "book.ipynb").write_text(notebook("y = 2\n", "leak(1)\n", "leak(2)\nleak(4)\nleak(3)", outputs=7))
    assert reported(capsys, "--baseline", "base.json", "--error-stale") == [(4, 2)]


def test_the_statement_of_a_finding_counts_lines_as_the_finding_does(toy: Toy, capsys: Capture) -> None:
    toy({"book.ipynb": BOOK})
    main([".", "--output-format", "json"])
    rows = json.loads(capsys.readouterr().out)["findings"]
    assert [(row["line"], row["statement"]["line"]) for row in rows] == [(2, 2), (2, 2), (3, 3)]


@pytest.mark.parametrize(
    ("after", "name", "found"),
    [
        (notebook("x = 1\nleak(1)\n", "# words\nleak(2)\nleak(3)", outputs=3), "book.ipynb", []),
        (notebook("x = 1\nleak(1)\n", "# words\nleak(22)\nleak(3)"), "book.ipynb", [(3, 2)]),
        (notebook("new = 1", "x = 1\nleak(1)\n", "# words\nleak(2)\nleak(3)"), "book.ipynb", []),
        (notebook("x = 1\nleak(1)\n", "leak(0)", "# words\nleak(2)\nleak(3)"), "book.ipynb", [(3, 1)]),
        (BOOK, "moved.ipynb", []),
        (notebook("x = 1\nleak(1)\n", "# words\nleak(22)\nleak(3)"), "moved.ipynb", [(3, 2)]),
    ],
    ids=["outputs", "a line", "a cell above", "a new cell", "renamed", "renamed and edited"],
)
def test_changed_lines_are_those_of_the_cells(
    toy: Toy, capsys: Capture, after: str, name: str, found: list[tuple[int, int]]
) -> None:
    root = toy({"book.ipynb": BOOK})
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    for words in (["init", "-q"], ["add", "-A"], [*identity, "commit", "-q", "-m", "Begin"]):
        subprocess.run(["git", *words], cwd=root, check=True)
    (root / "book.ipynb").unlink()
    (root / name).write_text(after)
    assert reported(capsys, "--since", "HEAD") == found


def test_suppressions_are_written_into_cells_and_nothing_else_changes(toy: Toy, capsys: Capture) -> None:
    root = toy({"book.ipynb": BOOK})
    assert reported(capsys, "--add-ignore=later") == []
    after = json.loads((root / "book.ipynb").read_text())
    comment = "# memlint: ignore[MEM901] -- later"
    assert ["".join(cell["source"]) for cell in after["cells"]] == [
        "Words.", f"x = 1\nleak(1)  {comment}\n", f"# words\nleak(2)  {comment}\nleak(3)  {comment}",
    ]  # fmt: skip
    for cell, before in zip(after["cells"], json.loads(BOOK)["cells"], strict=True):
        cell["source"] = before["source"]
    assert after == json.loads(BOOK)
