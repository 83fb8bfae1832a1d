"""A script or a notebook tries a new network on made-up numbers once, to see the shape of its output."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.linting import codes_in

PROGRAM = """
import numpy as np
import torch
from torch import nn
from data import pictures


class Head(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(3, width, 3), nn.ReLU(), nn.Conv2d(width, width, 3))

    def forward(self, x):
        return self.layers(x)


head = Head(512)
{run}

net = Head(64).cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
loss = nn.functional.mse_loss(net(pictures("train").cuda()), pictures("targets").cuda())
loss.backward()
optimizer.step()
"""


@pytest.mark.parametrize(
    ("run", "codes"),
    [
        ("shown = head(torch.zeros(8, 3, 96, 96))\nprint(shown.shape)", []),
        ("noise = torch.randn(8, 3, 96, 96)\nshown = head(noise)\nprint(shown.shape)", []),
        ("for _ in range(100):\n    print(head(torch.randn(8, 3, 96, 96)).mean().item())", ["MEM202"]),
        ("shown = head(torch.from_numpy(np.load('all.npy')))\nprint(shown.shape)", ["MEM202"]),
    ],
)
def test_a_trial_is_no_finding(tmp_path: Path, run: str, codes: list[str]) -> None:
    assert codes_in(tmp_path, PROGRAM.format(run=run)) == codes
