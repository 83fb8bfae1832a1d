"""A step of training that a library's users start: the loop is theirs, though no loop is known to run it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.linting import codes_in

AGENT = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Linear(512, 512)

    def forward(self, states):
        return self.layers(states)


class Agent:
    def __init__(self, memory):
        self.net = Net().cuda()
        self.memory = memory
        self.optimizer = torch.optim.Adam(self.net.parameters())
        self.losses = []

    def observe(self, transition):
        self.memory.push(transition)
        self._improve()

    def _improve(self):
        self._learn(self.memory.sample(64))

    def _learn(self, batch):
        loss = self.net(batch.cuda()).pow(2).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.losses.append({kept})

{started}
"""

ONCE = """
if __name__ == "__main__":
    Agent(make_memory()).observe(first())
"""
MAIN = """
def main():
    Agent(make_memory()).observe(first())
"""


@pytest.mark.parametrize(
    ("kept", "started", "codes"),
    [
        ("loss", "", ["MEM102"]),
        ("loss.item()", "", []),
        ("loss.detach().cpu()", "", []),
        # a program that takes one step
        ("loss", ONCE, []),
        ("loss", MAIN, []),
    ],
)
def test_the_users_of_a_library_repeat_its_steps(tmp_path: Path, kept: str, started: str, codes: list[str]) -> None:
    assert codes_in(tmp_path, AGENT.format(kept=kept, started=started)) == codes
