"""``Variable(x)`` shares the storage of ``x``, and not its graph."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint
from tests.trainings import SUMMED

TRAINING = "\nfrom torch.autograd import Variable\n" + SUMMED

EVALUATION = """
from torch.autograd import Variable


def validate(model, loader, criterion):
    model.eval()
    total = 0
    for x, y in loader:
        out = model({})
        total += {}
    return total.cpu().numpy()
"""


def codes(tmp_path: Path, text: str) -> list[str]:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "run.py").write_text(text)
    return [found.code for found in memlint.lint([tmp_path]).findings]


@pytest.mark.parametrize(
    ("added", "expected"),
    [
        ("loss", ["MEM101"]),
        ("Variable(loss)", []),
        ("Variable(loss, requires_grad=False)", []),
        ("Variable(data=loss)", []),
        ("Variable(loss.data)", []),
        ("Variable(loss).item() + loss", ["MEM101"]),
    ],
)
def test_a_sum_of_variables_keeps_no_graph(tmp_path: Path, added: str, expected: list[str]) -> None:
    assert codes(tmp_path, TRAINING.format(added)) == expected


@pytest.mark.parametrize(
    ("given", "added", "expected"),
    [
        # numpy() of what has a graph raises: no graph can be there
        ("x.cuda()", "criterion(out, y)", []),
        ("x.cuda()", "Variable(criterion(out, y))", ["MEM201"]),
        ("Variable(x.cuda(), requires_grad=False)", "Variable(criterion(out, y), requires_grad=False)", ["MEM201"]),
        ("Variable(x.cuda(), requires_grad=True)", "Variable(criterion(out, y))", []),
    ],
)
def test_an_evaluation_whose_losses_are_wrapped(tmp_path: Path, given: str, added: str, expected: list[str]) -> None:
    assert codes(tmp_path, EVALUATION.format(given, added)) == expected
