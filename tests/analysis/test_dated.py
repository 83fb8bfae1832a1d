"""Files that are written for a torch before 0.4, which has no grad mode to turn off: a note says so."""

from __future__ import annotations

from pathlib import Path

import pytest
from linting import why

import memlint
from memlint import Finding

EVALUATE = """
import torch
from torch import nn
from torch.autograd import Variable

net = nn.Linear(4096, 4096).cuda()


def evaluate(loader):
    net.eval()
    right = 0
    for x, y in loader:
        out = net(Variable(x).cuda())
        right += {counted}
    return right


def train(loader, optimizer):
    for x, y in loader:
        loss = nn.functional.cross_entropy(net(Variable(x).cuda()), Variable(y).cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print({shown})
"""
COUNTED = "(out.data.max(1)[1].cpu() == y).sum()"


def finding(tmp_path: Path, counted: str, shown: str, **files: str) -> Finding:
    (tmp_path / "net.py").write_text(EVALUATE.format(counted=counted, shown=shown))
    (tmp_path / ".git").mkdir()
    for name, text in files.items():
        (tmp_path / name.replace("_", ".")).write_text(text)
    (found,) = [each for each in memlint.lint([tmp_path]).findings if each.code == "MEM201"]
    return found


@pytest.mark.parametrize(
    ("shown", "files", "reason"),
    [
        pytest.param("loss.data[0]", {}, "`loss.data[0]`", id="a number taken out of a loss"),
        pytest.param("loss", {"README_md": "Needs PyTorch 0.3.1 and NumPy.\n"}, "for PyTorch 0.3", id="the README"),
        pytest.param(
            "loss",
            {"README_md": "* [PyTorch](https://pytorch.org/previous-versions/) v0.2\n* pytorch 0.3 works too\n"},
            "for PyTorch 0.3",
            id="the newest of several",
        ),
        pytest.param("loss", {"requirements_txt": "torch==0.3.1\n"}, "for PyTorch 0.3", id="the requirements"),
    ],
)
def test_a_note_that_says_so(tmp_path: Path, shown: str, files: dict[str, str], reason: str) -> None:
    found = finding(tmp_path, COUNTED, shown, **files)
    assert (found.severity, found.confidence) == ("note", "high")
    assert reason in why(found)


@pytest.mark.parametrize(
    ("counted", "files"),
    [
        pytest.param(COUNTED, {}, id="no release is named"),
        pytest.param(COUNTED, {"README_md": "Needs PyTorch >= 0.3.\n"}, id="or newer"),
        pytest.param(COUNTED, {"README_md": "Needs PyTorch 0.3+\n"}, id="or newer, by a sign"),
        pytest.param(COUNTED, {"README_md": "Needs PyTorch 0.3 or later.\n"}, id="or newer, in words"),
        pytest.param(COUNTED, {"README_md": "PyTorch 0.3, ported to PyTorch 1.0.\n"}, id="a newer one as well"),
        pytest.param("out.argmax(1).cpu().eq(y).sum().item()", {"README_md": "PyTorch 0.3\n"}, id="code of today"),
        pytest.param(
            COUNTED,
            {"README_md": "PyTorch 0.3\n", "more_py": "import torch\ntorch.no_grad()\n"},
            id="a guard elsewhere",
        ),
    ],
)
def test_a_torch_of_today(tmp_path: Path, counted: str, files: dict[str, str]) -> None:
    assert finding(tmp_path, counted, "loss", **files).severity == "warning"
