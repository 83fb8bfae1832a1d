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
