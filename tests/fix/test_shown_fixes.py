"""Other ways to mend a finding, which are shown and never written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import memlint
from memlint.cli import main
from memlint.finding import Edit
from memlint.fix.edits import place, splice

Capture = pytest.CaptureFixture[str]

BODY = """\
    model.eval()
    hits = 0
    for x, y in loader:
        hits += (model(x.cuda()).argmax(dim=1).cpu() == y).sum().item()
    return hits
"""
BEFORE = f"import torch\n\n\ndef evaluate(model, loader):\n{BODY}"
DOUBT = "a tensor created under it raises an error if autograd or an in-place update uses it later"


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An evaluation with grad mode on, alone in its project."""
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "evaluate.py").write_text(BEFORE)
    return tmp_path / "evaluate.py"


def decorated(mode: str) -> str:
    return BEFORE.replace("def evaluate", f"@torch.{mode}()\ndef evaluate")


def test_inference_mode_is_shown_beside_the_fix(program: Path, capsys: Capture) -> None:
    assert main(["."]) == 1
    _, fix, other = (line.strip() for line in capsys.readouterr().out.splitlines() if line.startswith("  = "))
    assert fix.startswith("= fix: decorate the function with `@torch.no_grad()` [unsafe fix: ")
    assert other == f"= or: decorate the function with `@torch.inference_mode()` [not applied by --fix: {DOUBT}]"


def test_json_has_what_it_would_write(program: Path, capsys: Capture) -> None:
    main([".", "--output-format", "json"])
    (finding,) = json.loads(capsys.readouterr().out)["findings"]
    (other,) = finding["alternatives"]
    assert (other["safety"], other["title"], other["doubt"]) == (
        "display",
        "decorate the function with `@torch.inference_mode()`",
        DOUBT,
    )
    (found,) = memlint.lint(["."]).findings
    edits: tuple[Edit, ...] = found.alternatives[0].edits
    assert splice(BEFORE, place(BEFORE, edits)) == decorated("inference_mode")


@pytest.mark.parametrize("arguments", [["--fix"], ["--fix", "--unsafe-fixes"], ["--fix-only", "--unsafe-fixes"]])
def test_it_is_never_written(program: Path, arguments: list[str], capsys: Capture) -> None:
    main([".", *arguments])
    assert program.read_text() == (decorated("no_grad") if "--unsafe-fixes" in arguments else BEFORE)
    main([".", "--diff", "--unsafe-fixes"])
    assert "inference_mode" not in "".join(capsys.readouterr().out.partition("--- ")[1:])


def test_where_the_fix_is_not_given_neither_is_the_other(program: Path, capsys: Capture) -> None:
    program.with_name("pyproject.toml").write_text('[tool.memlint]\nunfixable = ["MEM201"]\n')
    main(["."])
    assert "= or:" not in capsys.readouterr().out


def test_none_for_a_network_whose_output_a_loss_saves(program: Path, capsys: Capture) -> None:
    """Tensors of inference mode cannot be saved for backward."""
    program.write_text(
        "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n\n\n"
        "def distill(loader):\n    teacher, student = nn.Linear(8, 8).cuda(), nn.Linear(8, 8).cuda()\n"
        "    optimizer = torch.optim.SGD(student.parameters(), lr=0.1)\n    for x in loader:\n"
        "        target = teacher(x.cuda())\n"
        "        loss = F.mse_loss(student(x.cuda()), target)\n"
        "        optimizer.zero_grad()\n        loss.backward()\n        optimizer.step()\n"
    )
    main([".", "--preview"])
    out = capsys.readouterr().out
    assert "MEM202" in out and "no_grad():` [" in out and "inference_mode" not in out
