"""Buffers that ``copy_`` overwrites: a mean with the old value carries its graph on, another value ends it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.linting import codes_in

NORM = """
import torch
from torch import nn


class Norm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(width))
        self.register_buffer("spread", torch.ones(width))

    def forward(self, x):
        x = x * self.scale
        spread = x.var(dim=0)
        {update}
        return x / spread.sqrt()

    def mixed(self, spread):
        return 0.9 * self.spread + 0.1 * spread
"""


@pytest.mark.parametrize(
    ("update", "found"),
    [
        ("self.spread.copy_(0.9 * self.spread + 0.1 * spread)", True),
        ("self.spread.copy_(torch.lerp(self.spread, spread, 0.1))", True),
        # a mean that a variable or a helper holds
        ("blend = 0.9 * self.spread + 0.1 * spread\n        self.spread.copy_(blend)", True),
        ("self.spread.copy_(self.mixed(spread))", True),
        ("self.spread.copy_(spread)", False),
        # these read no more of the old value than its device, its shape or its data
        ("self.spread.copy_(spread.to(self.spread.device))", False),
        ("self.spread.copy_(spread.view_as(self.spread))", False),
        ("self.spread.copy_(torch.zeros_like(self.spread) + spread)", False),
        ("self.spread.copy_(0.9 * self.spread + 0.1 * spread.detach())", False),
        ("self.spread.copy_((0.9 * self.spread + 0.1 * spread).detach())", False),
        ("self.spread.data.copy_(0.9 * self.spread + 0.1 * spread)", False),
        ("with torch.no_grad():\n            self.spread.copy_(0.9 * self.spread + 0.1 * spread)", False),
    ],
)
def test_copies_into_a_buffer(tmp_path: Path, update: str, found: bool) -> None:
    assert ("MEM103" in codes_in(tmp_path, NORM.format(update=update))) is found


def test_what_a_layer_averages_is_an_activation(tmp_path: Path) -> None:
    plain = NORM.replace("x = x * self.scale", "").format(update="self.spread.copy_(0.9 * self.spread + 0.1 * spread)")
    assert codes_in(tmp_path, plain) == ["MEM103"]


LOOP = """
import torch


def train(loader, optimizer):
    net = torch.nn.Linear(10, 10).cuda()
    mean = torch.zeros(10, device="cuda")
    for x in loader:
        y = net(x.cuda())
        {update}
        loss = (y - mean).pow(2).sum()
        loss.backward()
"""


@pytest.mark.parametrize(
    ("update", "found"),
    [
        ("mean.copy_(0.9 * mean + 0.1 * y.mean(0))", True),
        ("mean.copy_(y.mean(0))", False),
        ("mean.copy_(0.9 * mean + 0.1 * y.detach().mean(0))", False),
    ],
)
def test_copies_into_a_variable(tmp_path: Path, update: str, found: bool) -> None:
    assert ("MEM103" in codes_in(tmp_path, LOOP.format(update=update))) is found
