"""What a part of a module keeps, where a function makes the module and runs it: however the module holds the part."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.linting import codes_in

PROGRAM = """
import torch
from torch import nn


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.kept = nn.Linear(512, 512), []

    def forward(self, x):
        {before}
        x = self.linear(x)
        self.kept.append(x.detach())
        return x


class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = Layer()

    def forward(self, x):
        return self.layer(x)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        {parts}

    def forward(self, x):
        {run}
        return x


def train(loader):
    net = Net().cuda()
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for x in loader:
        optimizer.zero_grad()
        net(x.cuda()).mean().backward()
        optimizer.step()
"""
LOOP = "for one in self.parts:\n            x = one(x)"
ITEMS = "for name, one in self.parts.items():\n            x = one(x)"
HELD = [
    pytest.param("self.part = Layer()", "x = self.part(x)", id="an attribute"),
    pytest.param("self.part = Inner()", "x = self.part(x)", id="a part of a part"),
    pytest.param("self.parts = nn.ModuleList([Layer() for _ in range(3)])", LOOP, id="a list"),
    pytest.param("self.parts = nn.ModuleList()\n        self.parts.append(Layer())", LOOP, id="a list that grows"),
    pytest.param(
        "parts = [nn.ReLU()]\n        parts.append(Layer())\n        self.parts = nn.ModuleList(parts)",
        LOOP,
        id="of several",
    ),
    pytest.param(
        "parts = [nn.Linear(512, 512, bias=bool(at)) for at in range(2)]"
        "\n        parts += [nn.Linear(512, 512), nn.ReLU()]"
        "\n        parts += [nn.Dropout(0.1), nn.GELU(), Layer()]\n        self.parts = nn.ModuleList(parts)",
        LOOP,
        id="of many",
    ),
    pytest.param("self.parts = nn.ModuleList([Layer()])", "x = self.parts[0](x)", id="by position"),
    pytest.param("self.parts = nn.ModuleDict({'a': Layer()})", "x = self.parts['a'](x)", id="by name"),
    pytest.param("self.parts = nn.ModuleDict({'a': Layer()})", LOOP.replace("parts:", "parts.values():"), id="values"),
    pytest.param("self.parts = nn.ModuleDict({'a': Layer()})", ITEMS, id="names and values"),
    pytest.param("self.parts = nn.Sequential(Layer(), nn.ReLU())", "x = self.parts(x)", id="a chain"),
]


@pytest.mark.parametrize(("parts", "run"), HELD)
def test_what_a_part_keeps_is_kept(tmp_path: Path, parts: str, run: str) -> None:
    assert codes_in(tmp_path, PROGRAM.format(before="pass", parts=parts, run=run)) == ["MEM104"]


@pytest.mark.parametrize(("parts", "run"), HELD)
def test_what_a_part_begins_anew_is_not(tmp_path: Path, parts: str, run: str) -> None:
    assert codes_in(tmp_path, PROGRAM.format(before="self.kept = []", parts=parts, run=run)) == []
