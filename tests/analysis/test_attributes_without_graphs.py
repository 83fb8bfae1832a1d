"""Backwards that keep a graph in which a tensor of the object takes part, which may bring a graph of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint

PROGRAM = """
import torch
from torch import nn


class Agent:
    def __init__(self, count, device):
        self.actor = nn.Linear(8, 51).to(device)
        self.other = nn.Linear(8, 51).to(device)
        self.optimizer = torch.optim.Adam(self.actor.parameters())
        {begin}

    def fill(self, x):
        {fill}

    def update(self, x):
        loss = -(self.actor(x) * self.atoms).sum(-1).mean()
        self.optimizer.zero_grad()
        loss.backward(retain_graph=True)
        self.optimizer.step()


def train(loader, device):
    agent = Agent(51, device)
    {before}
    for x in loader:
        agent.fill(x)
        agent.update(x)


train(torch.utils.data.DataLoader([]), "cuda")
"""

ATOMS = "self.atoms = torch.linspace(0, 1, count).to(device)"


def is_found(tmp_path: Path, begin: str, fill: str = "print(x)", before: str = "print(device)") -> bool:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "train.py").write_text(PROGRAM.format(begin=begin, fill=fill, before=before))
    result = memlint.lint([tmp_path], isolated=True)
    assert not result.failures
    return any(each.code == "MEM112" for each in result.findings)


@pytest.mark.parametrize(
    "begin",
    [
        ATOMS,
        f"{ATOMS}\n        self.atoms = self.atoms.unsqueeze(0)",
        "self.atoms = torch.tensor([0.1] * count, device=device)",
        "with torch.no_grad():\n            self.atoms = self.other(torch.zeros(1, 8, device=device))",
    ],
)
def test_an_attribute_without_a_graph(tmp_path: Path, begin: str) -> None:
    assert is_found(tmp_path, begin)


@pytest.mark.parametrize(
    ("begin", "fill", "before"),
    [
        pytest.param(
            "self.atoms = self.other(torch.zeros(1, 8, device=device))", "print(x)", "print(device)", id="of a model"
        ),
        pytest.param(ATOMS, "self.atoms[0] = self.other(x)", "print(device)", id="written into"),
        pytest.param(ATOMS, "self.atoms.copy_(self.other(x))", "print(device)", id="written by a method"),
        pytest.param(ATOMS, "self.atoms = self.other(x)", "print(device)", id="set later"),
        pytest.param(ATOMS, "print(x)", "agent.atoms = agent.other(torch.zeros(1, 8))", id="set by others"),
        pytest.param(
            "self.code = torch.zeros(count, requires_grad=True)\n        self.atoms = self.code * 2",
            "print(x)",
            "print(device)",
            id="computed from a leaf",
        ),
    ],
)
def test_an_attribute_that_may_bring_a_graph(tmp_path: Path, begin: str, fill: str, before: str) -> None:
    assert not is_found(tmp_path, begin, fill, before)
