"""What is found in notebooks, and how it is said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from notebooks import notebook, old_notebook, prose

import memlint
from memlint.cli import main
from memlint.finding import shown_place

Capture = pytest.CaptureFixture[str]

MODEL = """import torch
from torch import nn
model = nn.Linear(4, 4).cuda()
opt = torch.optim.SGD(model.parameters(), 0.1)
"""
STEP = """for x, y in loader:
    opt.zero_grad()
    loss = ((model(x.cuda()) - y) ** 2).mean()
    loss.backward()
    opt.step()
    losses.append(loss)
"""
CELLS = ("!pip install torch\n%matplotlib inline", MODEL, prose("Train."), "losses = []", STEP)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "pyproject.toml").touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def places(result: memlint.Result) -> list[tuple[str, str]]:
    return [(shown_place(one, column=False), one.code) for one in result.findings]


def test_state_flows_from_cell_to_cell(project: Path) -> None:
    (project / "a.ipynb").write_text(notebook(*CELLS))
    result = memlint.lint(["a.ipynb"])
    assert places(result) == [("a.ipynb:cell 5:6", "MEM102")]
    (finding,) = result.findings
    assert [(step.cell, step.line) for step in finding.trace] == [(5, 3)]


def test_a_trace_names_the_cells_that_it_leads_through(project: Path) -> None:
    define = "def step(x, y):\n    out = model(x.cuda())\n    return ((out - y) ** 2).mean()\n"
    loop = "total = 0\nfor x, y in loader:\n    loss = step(x, y)\n    loss.backward()\n    total += loss\n"
    (project / "a.ipynb").write_text(notebook(MODEL, define, loop))
    (finding,) = memlint.lint(["a.ipynb"]).findings
    assert (finding.code, finding.cell, finding.line) == ("MEM101", 3, 5)
    assert (2, 2) in [(step.cell, step.line) for step in finding.trace]


def test_a_notebook_says_what_its_module_says(project: Path) -> None:
    """Also in the same words, and with the same fixes."""
    (project / "a.ipynb").write_text(notebook(MODEL, "losses = []", STEP))
    (project / "b.py").write_text(f"{MODEL}\n\nlosses = []\n\n{STEP}")
    (one,), (other,) = memlint.lint(["a.ipynb"]).findings, memlint.lint(["b.py"]).findings
    assert (one.code, one.message, one.help, one.confidence) == (
        other.code,
        other.message,
        other.help,
        other.confidence,
    )
    assert one.fix is not None and other.fix is not None and one.fix.title == other.fix.title
    assert other.cell is None


def test_notebooks_are_found_as_python_files_are(project: Path, capsys: Capture) -> None:
    (project / "books").mkdir()
    for name in ("a.ipynb", "books/b.ipynb", "c.ipynb"):
        (project / name).write_text(notebook(*CELLS))
    (project / ".ipynb_checkpoints").mkdir()
    (project / ".ipynb_checkpoints/a-checkpoint.ipynb").write_text(notebook(*CELLS))
    assert main(["--exclude", "c.ipynb", "--output-format", "concise"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(" warning")[0] for line in lines[:-2]] == [
        "a.ipynb:cell 5:6:5:",
        "books/b.ipynb:cell 5:6:5:",
    ]


def test_what_was_found_is_kept_until_the_notebook_changes(project: Path, capsys: Capture) -> None:
    file = project / "a.ipynb"
    file.write_text(notebook(*CELLS))
    said = []
    for _ in range(2):
        assert main(["a.ipynb", "--verbose", "--output-format", "concise"]) == 1
        out, err = capsys.readouterr()
        said.append((out.splitlines()[0], "are those of an earlier run" in err))
    file.write_text(notebook("x = 1", *CELLS))
    assert main(["a.ipynb", "--verbose", "--output-format", "concise"]) == 1
    assert said == [(said[0][0], False), (said[0][0], True)]
    assert capsys.readouterr().out.startswith("a.ipynb:cell 6:6:5:")


@pytest.mark.parametrize(
    ("step", "suppressed"),
    [
        (STEP.replace("append(loss)", "append(loss)  # memlint: ignore[MEM102] -- few"), [True]),
        (STEP.replace("    losses", "    # memlint: ignore[MEM102]\n    losses"), [True]),
        (f"# memlint: ignore-file[MEM102]\n{STEP}", [True]),
        (f"# noqa: MEM102\n{STEP}", [False]),
        (STEP, [False]),
    ],
)
def test_comments_suppress_inside_of_cells(project: Path, step: str, suppressed: list[bool]) -> None:
    (project / "a.ipynb").write_text(notebook(*CELLS[:-1], step))
    found = [one for one in memlint.lint(["a.ipynb"]).findings if one.code == "MEM102"]
    assert [one.suppressed is not None for one in found] == suppressed


def test_a_comment_at_the_end_of_a_cell_says_nothing_of_the_next_one(project: Path) -> None:
    body = "model(x.cuda())"
    first = f"{MODEL}losses = []\n# memlint: ignore[MEM102]"
    loop = "for x in loader: loss = model(x.cuda()).sum(); loss.backward(); losses.append(loss)"
    (project / "a.ipynb").write_text(notebook(first, loop, body))
    found = {(one.code, one.cell): one.suppressed for one in memlint.lint(["a.ipynb"]).findings}
    assert found["MEM102", 2] is None
    assert ("MEM001", 1) in found, "it suppresses nothing"


def test_a_notebook_in_another_language_is_skipped_and_said(project: Path, capsys: Capture) -> None:
    kernel = {"name": "ir", "language": "R", "display_name": "R"}
    (project / "a.ipynb").write_text(notebook("x <- 1", kernelspec=kernel))
    assert main(["a.ipynb"]) == 0
    out, err = capsys.readouterr()
    assert "skipped a.ipynb: a notebook in R" in err
    assert out.startswith("Found nothing in 0 files; 1 skipped")


def test_a_notebook_of_python_2_is_checked_and_said(project: Path) -> None:
    (project / "a.ipynb").write_text(old_notebook("print 'x'\n", MODEL, "losses = []", STEP))
    result = memlint.lint(["a.ipynb"])
    assert places(result)[0] == ("a.ipynb:cell 1:1", "MEM000")
    assert "Python 2" in result.findings[0].message
    assert places(result)[1] == ("a.ipynb:cell 4:6", "MEM102")
    assert all(one.fix is None for one in result.findings)


def test_columns_of_an_indented_cell_are_those_of_the_notebook(project: Path) -> None:
    indented = "".join(f"    {line}\n" for line in STEP.splitlines())
    (project / "a.ipynb").write_text(notebook(*CELLS[:-1], indented))
    (finding,) = memlint.lint(["a.ipynb"]).findings
    assert (finding.line, finding.column) == (6, 9)
    assert main(["a.ipynb", "--fix"]) == 1
    assert (project / "a.ipynb").read_text() == notebook(*CELLS[:-1], indented)


def test_the_code_of_a_notebook_is_context_of_other_files(project: Path) -> None:
    """As that of any file is that calls it."""
    (project / "lib.py").write_text("def run(model, x):\n    return model(x)\n")
    call = f"from lib import run\n{MODEL}kept = []\nfor x in loader:\n    kept.append(run(model, x.cuda()))\n"
    (project / "a.ipynb").write_text(notebook(call))
    (project / "a.py").write_text(call)
    result = memlint.lint(["a.ipynb", "a.py"])
    of_notebook = [one.code for one in result.findings if one.path == "a.ipynb"]
    assert of_notebook
    assert of_notebook == [one.code for one in result.findings if one.path == "a.py"]


def test_every_format_takes_a_notebook(project: Path, capsys: Capture) -> None:
    (project / "a.ipynb").write_text(notebook(*CELLS))
    for name in ("text", "concise", "json", "sarif", "github", "gitlab", "junit", "rdjson"):
        assert main(["a.ipynb", "--output-format", name]) == 1
        said = capsys.readouterr().out
        assert "cell 5:" in said or '"cell": 5' in said, name


def test_the_excerpt_is_that_of_the_cell(project: Path, capsys: Capture) -> None:
    (project / "a.ipynb").write_text(notebook(*CELLS))
    assert main(["a.ipynb"]) == 1
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert lines[2:4] == ["5 |     opt.step()", "6 |     losses.append(loss)"]


def test_the_fix_of_a_notebook_is_kept_whole(project: Path) -> None:
    (project / "a.ipynb").write_text(notebook(*CELLS))
    before: dict[str, Any] = json.loads((project / "a.ipynb").read_text())
    assert main(["a.ipynb", "--fix"]) == 0
    after = json.loads((project / "a.ipynb").read_text())
    before["cells"][4]["source"][5] = "    losses.append(loss.detach())\n"
    assert after == before


@pytest.mark.parametrize("opened", ["model.eval()\n", ""])
def test_a_guard_is_written_into_the_cell_of_its_loop(project: Path, opened: str) -> None:
    test = f"{opened}hits = 0\nfor x, y in test_loader:\n    hits += (model(x.cuda()).argmax(1) == y).sum().item()\n"
    (project / "a.ipynb").write_text(notebook("# %%\n!ls", MODEL, "model.eval()", test))
    before = json.loads((project / "a.ipynb").read_text())["cells"]
    main(["a.ipynb", "--fix", "--unsafe-fixes"])
    after = json.loads((project / "a.ipynb").read_text())["cells"]
    assert before[:3] == after[:3]
    assert "no_grad" in "".join(after[3]["source"])
    compile("".join(after[3]["source"]), "cell", "exec")
