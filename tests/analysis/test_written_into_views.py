"""Graphs that are written into a view of a tensor, or under a name that is computed: a later use needs them. Beside
each, the same program whose write cuts the graph or goes elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint

TRAINED = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(8, 8)
        self.mix = nn.Linear(8, 8)
        self.head = nn.Linear(8, 8)

    def forward(self, x):
        encoded = self.encoder(x)
        rows = torch.zeros_like(encoded)
        for at in range(encoded.size(0)):
            {write}
        return self.head(rows)


def main(loader):
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x in loader:
        loss = net(x).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


def codes(folder: Path, text: str) -> list[str]:
    (folder / "case.py").write_text(text, encoding="utf-8")
    return [one.code for one in memlint.lint([folder], isolated=True).findings]


@pytest.mark.parametrize(
    "write",
    [
        "rows[at][0] = self.mix(encoded[at])",
        "rows[at].copy_(self.mix(encoded[at]))",
        "rows[at].view(-1)[:] = self.mix(encoded[at])",
        "rows.T[at] = self.mix(encoded[at])",
        "rows[at][0] += self.mix(encoded[at])",
        "rows[at][0].add_(self.mix(encoded[at]))",
        "row = rows[at]; row[0] = self.mix(encoded[at])",
        "row = rows[at]; row.copy_(self.mix(encoded[at]))",
        "several = [rows]; several[0][at][0] = self.mix(encoded[at])",
    ],
)
def test_a_write_into_a_view_keeps_the_graph(tmp_path: Path, write: str) -> None:
    assert codes(tmp_path, TRAINED.format(write=write)) == []


@pytest.mark.parametrize(
    "write",
    [
        "rows[at][0] = self.mix(encoded[at]).detach()",
        "rows[at].copy_(self.mix(encoded[at]).detach())",
        "rows.data[at] = self.mix(encoded[at])",
        "rows.detach()[at] = self.mix(encoded[at])",
        "other = torch.zeros(8); other[0][0] = self.mix(encoded[at])",
    ],
)
def test_a_write_that_autograd_does_not_see(tmp_path: Path, write: str) -> None:
    assert "MEM202" in codes(tmp_path, TRAINED.format(write=write))


SPREAD = """
import torch
from torch import nn


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 8)
        self.register_buffer("gate", torch.ones(8))

    def forward(self, x):
        return self.linear(x) * self.gate


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Layer() for _ in range(4)])
        self.router = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8))

    def route(self, text: torch.Tensor):
        gates = self.router(text)
        self.spread(gates, "gate")

    def spread(self, gates: torch.Tensor, name: str):
        gates = gates.to(dtype=getattr(self.layers[0], name).dtype)
        if gates.dim() == 1:
            gates = gates.unsqueeze(0)
        for layer in self.layers:
            setattr(layer, name, {value})

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


def main(loader):
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for text, x in loader:
        net.route(text)
        loss = net(x).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


@pytest.mark.parametrize(("value", "expected"), [("gates", []), ("gates.detach()", ["MEM201"])])
def test_a_graph_under_a_computed_name(tmp_path: Path, value: str, expected: list[str]) -> None:
    assert codes(tmp_path, SPREAD.format(value=value)) == expected
