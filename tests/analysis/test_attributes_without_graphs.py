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


def write(bank, values):
    bank[0] = values[0] + bank[1]


def train(loader, device):
    agent = Agent(51, device)
    {before}
    for x in loader:
        agent.fill(x)
        agent.update(x)


train(torch.utils.data.DataLoader([]), "cuda")
"""

SUBCLASS = """

class Other(Agent):
    def __init__(self, count, device):
        super().__init__(count, device)
        self.atoms = {value}
"""

ATOMS = "self.atoms = torch.linspace(0, 1, count).to(device)"


def is_found(tmp_path: Path, begin: str, fill: str = "print(x)", before: str = "print(device)", more: str = "") -> bool:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "train.py").write_text(PROGRAM.format(begin=begin, fill=fill, before=before) + more)
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
        pytest.param(ATOMS, "atoms = self.atoms; atoms.add_(self.other(x))", "print(device)", id="by another name"),
        pytest.param(ATOMS, "write(self.atoms, self.other(x))", "print(device)", id="written by a function"),
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


def test_an_attribute_of_a_subclass(tmp_path: Path) -> None:
    assert not is_found(tmp_path, ATOMS, more=SUBCLASS.format(value="self.other(torch.zeros(1, 8))"))
    other = SUBCLASS.replace("(Agent)", "").replace("super().__init__(count, device)", "self.count = count")
    assert is_found(tmp_path, ATOMS, more=other.format(value="count * device"))  # the attribute of another class
