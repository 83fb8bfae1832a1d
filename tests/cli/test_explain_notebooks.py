"""``memlint explain`` in notebooks: it says of a line of a cell what it says of that line in a script."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from notebooks import code, notebook, prose

from memlint.cli import main

CELLS = [
    "import torch\nmodel = torch.nn.Linear(512, 512).cuda()\noptimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n",
    "def step(x, y):\n    loss = torch.nn.functional.mse_loss(model(x), y)\n    loss.backward()\n    return loss\n",
    "losses = []\nfor x, y in loader:\n    loss = step(x, y)\n    optimizer.step()\n    losses.append(loss)\n",
    "@torch.no_grad()\ndef validate(loader):\n    seen = []\n    for x, y in loader:\n        seen.append(model(x))\n",
]
MAGIC = "%time x = 1\n"


def asked(place: str, capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, Any]:
    done = main(["explain", place, "--output-format", "json", "--isolated", *options])
    said = capsys.readouterr()
    return done, json.loads(said.out) if done == 0 else said.err


@pytest.fixture
def both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The program as a script and as a notebook, with a cell of text and one that IPython alone runs."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "script.py").write_text("\n\n".join(CELLS), "utf-8")
    cells = [CELLS[0], prose("# steps"), CELLS[1], MAGIC + CELLS[2], code("!ls\n"), "def broken(:\n", CELLS[3]]
    (tmp_path / "book.ipynb").write_text(notebook(*cells), "utf-8")
    return tmp_path


#: the numbers of the cells in the notebook, and how many lines stand before theirs
NUMBERS = ((1, 0), (3, 0), (4, 1), (7, 0))


def lines() -> list[tuple[int, int, int]]:
    """Each line of the program: its number in the script, its cell, and its number there."""
    found, line = [], 1
    for source, (number, above) in zip(CELLS, NUMBERS, strict=True):
        found += [(line + at, number, at + 1 + above) for at, text in enumerate(source.splitlines()) if text[0] != "@"]
        line += source.count("\n") + 2
    return found


def without_places(found: dict[str, Any]) -> list[Any]:
    said = []
    for one in found["statements"]:
        values = [(row["expression"], row["kinds"], row["graph"], row["device"], row["size"]) for row in one["values"]]
        said.append((one["source"], one["function"], one["grad_mode"], one["column"], values, len(one["loops"])))
    rules = [(one["code"], one["status"], [why["name"] for why in one["reasons"]]) for one in found["rules"]]
    return [said, rules, found["source"]]


@pytest.mark.parametrize(("line", "cell", "number"), lines())
def test_a_line_means_the_same_as_in_a_script(
    both: Path, line: int, cell: int, number: int, capsys: pytest.CaptureFixture[str]
) -> None:
    done, script = asked(f"script.py:{line}", capsys)
    again, found = asked(f"book.ipynb:cell {cell}:{number}", capsys)
    assert (done, again) == (0, 0), (script, found)
    assert without_places(found) == without_places(script)
    assert (found["path"], found["cell"], found["line"]) == ("book.ipynb", cell, number)
    # (a decorator's line is one of the definition below it)
    assert all(one["line"] - number in (0, -1) for one in found["statements"])
    assert script["cell"] is None and all(
        row["freed_in"] == [] for one in script["statements"] for row in one["values"]
    )


def test_places_name_the_cell(both: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "book.ipynb:cell 4:6", "--isolated"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("book.ipynb:cell 4:6:5: losses.append(loss)\n")
    assert "`for (x, y) in loader` at cell 4, line 3:" in out
    assert "MEM102[retained-graph]: reported" in out
    assert "book.ipynb:cell 3:2:" in out and "(cell 4, line 6)" in out
    _, found = asked("book.ipynb:cell 3:4:12", capsys)
    (loss,) = found["statements"][0]["values"]
    assert (loss["line"], loss["column"]) == (4, 12)
    assert (loss["freed_in"], loss["freed_by"]) == ([3], [3])
    assert "freed by backward() at cell 3, line 3" in loss["text"]


@pytest.mark.parametrize("place", ["book.ipynb:cell 4:6:5", "book.ipynb:cell4:6:5", "book.ipynb:4:6:5"])
def test_a_cell_may_be_written_in_short(both: Path, place: str, capsys: pytest.CaptureFixture[str]) -> None:
    done, found = asked(place, capsys)
    assert done == 0 and (found["cell"], found["line"], found["column"]) == (4, 6, 5)


def test_an_indented_cell_counts_as_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    text = "".join(f"    {line}\n" for line in CELLS[0].splitlines())
    (tmp_path / "book.ipynb").write_text(notebook(text), "utf-8")
    _, found = asked("book.ipynb:cell 1:2:5", capsys)
    assert [one["column"] for one in found["statements"]] == [5] and found["column"] == 5
    assert found["statements"][0]["values"][0]["expression"] == "model"


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("book.ipynb:7", "is a notebook: name the cell"),
        ("book.ipynb:cell 2:1", "has no code cell 2"),
        ("book.ipynb:cell 40:1", "has no code cell 40"),
        ("book.ipynb:cell 1:40", "cell 1 of book.ipynb has 3 lines, so there is no line 40"),
        ("book.ipynb:cell 4:0", "count from 1"),
        ("book.ipynb:cell 5:1", "line 1 of cell 5 of book.ipynb is run by IPython alone"),
        ("book.ipynb:cell 6:1", "cell 6 of book.ipynb does not parse: line 1: "),
        ("script.py:cell 1:1", "script.py is no notebook, and has no cell 1"),
        ("broken.ipynb:cell 1:1", "broken.ipynb cannot be read: not a notebook: its JSON is broken"),
        ("other.ipynb:cell 1:1", "it is a notebook in R"),
    ],
)
def test_refuses(both: Path, place: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    (both / "broken.ipynb").write_text("{", "utf-8")
    (both / "other.ipynb").write_text(notebook("x <- 1", kernelspec={"name": "ir", "language": "R"}), "utf-8")
    done, error = asked(place, capsys)
    assert done == 2 and said in error


def test_a_comment_in_the_cell_suppresses_what_is_explained(both: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = CELLS[2].replace("losses.append(loss)", "losses.append(loss)  # memlint: ignore[MEM102] -- few")
    (both / "book.ipynb").write_text(notebook(CELLS[0], CELLS[1], text), "utf-8")
    assert main(["explain", "book.ipynb:cell 3:5", "--rule", "MEM102", "--isolated"]) == 0
    out = capsys.readouterr().out
    assert "found, and not shown" in out and "a comment (ignore) suppresses it: few" in out
