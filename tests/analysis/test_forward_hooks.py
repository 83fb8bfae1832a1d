"""Runs whose output nobody takes: for a hook on the model, of which the loss may be made, or for nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint

PROGRAM = """
import torch
from torch import nn
from torch.nn import functional as F


class Features:
    def __init__(self, net):
        self.kept = dict()
        net.layer.register_forward_hook(self.keep)

    def keep(self, module, inputs, output):
        self.kept["x"] = output


def add(net, kept):
    net.layer.register_forward_hook(lambda module, inputs, output: kept.append(output))


def train(net: nn.Module, other: nn.Module, loader):
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    other.eval()
    {before}
    for x, y in loader:
        loss = F.cross_entropy(net(x), y){more}
        other(x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("before", "more", "codes"),
    [
        ("pass", "", ["MEM201"]),
        ("features = Features(other)", " + features.kept['x'].mean()", []),
        ("kept = []; add(other, kept)", " + kept.pop().mean()", []),
        ("kept = []; other.register_forward_hook(lambda m, i, o: kept.append(o))", " + kept.pop().mean()", []),
    ],
)
def test_dropped_runs(tmp_path: Path, before: str, more: str, codes: list[str]) -> None:
    (tmp_path / "train.py").write_text(PROGRAM.format(before=before, more=more))
    result = memlint.lint([tmp_path])
    assert not result.failures
    assert [item.code for item in result.findings if item.code == "MEM201"] == codes


WATCH = """
class Watch:
    def __init__(self, model):
        self.model = model
        self.handle = model.head.register_forward_hook(self._look)

    def _look(self, module, args, output):
        self.seen = {seen}

    def run(self, x):
        return self.model(x)
"""
WATCHED = """
from torch import nn

from watch import Watch


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4096, 4096)
        self.head = nn.Linear(4096, 4096)

    def forward(self, x):
        return self.head(self.body(x))


def evaluate(loader):
    model = Net().cuda()
    watch = Watch(model)
    model.eval()
    right = 0
    for x, y in loader:
        right += (model(x.cuda()).argmax(1) == y.cuda()).sum().item()
    return right
"""


@pytest.mark.parametrize(
    ("seen", "codes"),
    [("output.detach().norm()", ["MEM201"]), ("torch.autograd.grad(output.sum(), self.model.head.weight)", [])],
)
def test_a_hook_of_another_file(tmp_path: Path, seen: str, codes: list[str]) -> None:
    """The file with the hook is not linted: its method is first analysed where the evaluation is judged."""
    (tmp_path / "watch.py").write_text("import torch\n\n" + WATCH.format(seen=seen))
    (tmp_path / "train.py").write_text(WATCHED)
    result = memlint.lint([tmp_path / "train.py"])
    assert not result.failures
    assert [item.code for item in result.findings] == codes
