"""``backward(retain_graph=True)`` of a loss that the function is given: what its callers do tells whether the graph is
needed again."""

from __future__ import annotations

from pathlib import Path

import pytest
from linting import codes_in

AGENT = """
import random
import torch
import torch.nn.functional as F
from torch import nn
from library import consume


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)

    def forward(self, x):
        return self.lin(x)


class Critic:
    def __init__(self):
        self.net = Net().cuda()
        self.optimizer = torch.optim.Adam(self.net.parameters())
        self.last = 0

    def update(self, loss, clip=True):
        self.optimizer.zero_grad()
        loss.backward(retain_graph=True)
        {inside}
        self.optimizer.step()


class Agent:
    def __init__(self):
        self.first = Critic()
        self.second = Critic()
        self.memory = []

    def optimize(self):
        states = torch.stack([row[0] for row in random.sample(self.memory, 8)]).cuda()
        wanted = torch.stack([row[1] for row in random.sample(self.memory, 8)]).cuda()
        values = self.first.net(states)
        others = self.second.net({seen})
        loss = F.mse_loss(values, wanted)
        other = F.mse_loss(others, wanted)
        {call}
        {after}
"""
PLAIN = {"inside": "pass", "seen": "states", "call": "self.first.update(loss)", "after": "self.second.update(other)"}

NEEDED = {
    "the loss goes through what the first one has made": {"seen": "values"},
    "the caller's own backward": {"after": "(other + loss).backward()"},
    "a second update of the same loss": {"after": "self.second.update(loss)"},
    "the function keeps it": {"inside": "self.last = loss"},
    "the function's own second backward": {"inside": "(loss * 2).backward()"},
    "a helper that nobody sees": {"after": "consume(loss)"},
    "handed on as a value": {"call": "consume(self.first.update)"},
    "the caller leaves what it has made to others": {"after": "self.values = values"},
    "a caller of which nothing is known": {"after": "consume(lambda l: self.second.update(l))"},
}


def test_graphs_that_no_caller_needs(tmp_path: Path) -> None:
    assert "MEM112" in codes_in(tmp_path, AGENT.format(**PLAIN))


@pytest.mark.parametrize("change", NEEDED.values(), ids=NEEDED.keys())
def test_graphs_that_a_caller_may_need(tmp_path: Path, change: dict[str, str]) -> None:
    assert "MEM112" not in codes_in(tmp_path, AGENT.format(**{**PLAIN, **change}))


KEPT = """
import torch
import torch.nn.functional as F
from torch import nn


class Trainer:
    def __init__(self):
        self.net = nn.Linear(3, 3).cuda()
        self.optimizer = torch.optim.Adam(self.net.parameters())

    def one(self, x, y):
        out = self.net(x)
        self.optimizer.zero_grad()
        F.cross_entropy(out, y).backward(retain_graph=True)
        self.optimizer.step()
        self.out = out

    def run(self, loader):
        for x, y in loader:
            self.one(x.cuda(), y.cuda())
            {after}
"""


@pytest.mark.parametrize(
    ("after", "found"), [("print(self.out.argmax(1))", True), ("self.out.pow(2).mean().backward()", False)]
)
def test_what_a_method_leaves_to_one_that_trains(tmp_path: Path, after: str, found: bool) -> None:
    assert ("MEM112" in codes_in(tmp_path, KEPT.format(after=after))) is found
