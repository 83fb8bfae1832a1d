"""How grave a sum of losses is whose graphs backward has freed: by how often the loop around it comes round."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint

TRAIN = """
import torch
from torch import nn


class Agent:
    def __init__(self):
        self.net = nn.Linear(8, 1).cuda()
        self.optimizer = torch.optim.SGD(self.net.parameters(), 0.1)

    def train(self, loader):
        total = 0
        for {target} in {rounds}:
            loss = (self.net(self.sample().cuda()) ** 2).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            total += loss
        return total
"""


@pytest.mark.parametrize(
    ("target", "rounds", "severity"),
    [
        pytest.param("batch", "loader", "warning", id="a loader"),
        pytest.param("_", "range(self.updates)", "note", id="as often as a setting says"),
    ],
)
def test_a_sum_of_freed_losses(tmp_path: Path, target: str, rounds: str, severity: str) -> None:
    (tmp_path / "agent.py").write_text(TRAIN.format(target=target, rounds=rounds))
    found = memlint.lint(tmp_path, select=["MEM101"]).findings
    assert [finding.severity for finding in found] == [severity]


COLLECT = """
import torch
from torch import nn


def features(loader, device):
    model = nn.Conv2d(3, 64, 3).to(device).eval()
    kept = []
    with torch.no_grad():
        for x in loader:
            out = model(x.to(device))
            kept.append({kept})
    return kept
"""


@pytest.mark.parametrize(
    ("kept", "severity"), [("out", "warning"), ("out.to(device)", "note"), ("out.half()", "warning")]
)
def test_what_is_put_on_the_device_is_wanted_there(tmp_path: Path, kept: str, severity: str) -> None:
    (tmp_path / "features.py").write_text(COLLECT.format(kept=kept))
    found = memlint.lint(tmp_path, select=["MEM104"]).findings
    assert [finding.severity for finding in found] == [severity]
