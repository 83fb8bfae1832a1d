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
    "a caller of which nothing is known": {"after": "consume(lambda l: self.second.update(l))"},
}


def test_graphs_that_no_caller_needs(tmp_path: Path) -> None:
    assert "MEM112" in codes_in(tmp_path, AGENT.format(**PLAIN))


@pytest.mark.parametrize("change", NEEDED.values(), ids=NEEDED.keys())
def test_graphs_that_a_caller_may_need(tmp_path: Path, change: dict[str, str]) -> None:
    assert "MEM112" not in codes_in(tmp_path, AGENT.format(**{**PLAIN, **change}))


GLOBAL = """
import torch
import torch.nn.functional as F
from torch import nn


class Body(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(8))
        self.kept = None

    def embed(self, x):
        {kept}
        return x * self.scale


body = Body().cuda()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(8, 2)

    def forward(self, x):
        return self.head(body.embed(x))


def train(loader):
    net = Net().cuda()
    optimizer = torch.optim.Adam(net.parameters())
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x.cuda()), y.cuda())
        loss.backward(retain_graph=True)
        optimizer.step()
"""


def test_parameters_of_a_model_of_the_module_bring_no_graph(tmp_path: Path) -> None:
    assert "MEM112" in codes_in(tmp_path, GLOBAL.format(kept="pass"))


def test_a_model_of_the_module_that_keeps_its_graph(tmp_path: Path) -> None:
    kept = "x = x if self.kept is None else x + self.kept\n        self.kept = x * self.scale"
    assert "MEM112" not in codes_in(tmp_path, GLOBAL.format(kept=kept))


LABELS = """
import torch
import torch.nn.functional as F
from torch import nn


class Gan:
    def __init__(self, loader):
        self.loader = loader
        self.model = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 1)).cuda()
        self.optimizer = torch.optim.Adam(self.model.parameters())

    def train(self):
        self.real = torch.ones(8, 1).cuda()
        for x in self.loader:
            self.optimizer.zero_grad()
            loss = F.mse_loss(self.model(x.cuda()), self.real)
            loss.backward(retain_graph=True)
            self.optimizer.step()
            {after}
"""


@pytest.mark.parametrize(
    ("after", "found"), [("pass", True), ("self.real = self.model(x.cuda())", False), ("self.renew(x)", False)]
)
def test_labels_that_are_the_same_in_each_round(tmp_path: Path, after: str, found: bool) -> None:
    renew = "\n    def renew(self, x):\n        self.real = self.model(x.cuda())\n"
    assert ("MEM112" in codes_in(tmp_path, LABELS.format(after=after) + renew)) is found


METER = """
import pytorch_lightning as pl
import torch.nn.functional as F
from torch import nn


class Meter:
    def __init__(self):
        self.reset()

    def reset(self):
        self.sum, self.count = 0, 0

    def update(self, value, n=1):
        self.sum += value * n
        self.count += n


class Lit(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(3, 3)
        self.meter = Meter()

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = F.cross_entropy(self.net(x), y)
        self.meter.update(loss)
        return loss

    def on_train_epoch_start(self):
        {begin}
"""


@pytest.mark.parametrize(("begin", "found"), [("pass", True), ("self.meter.reset()", False)])
def test_a_meter_that_its_constructor_alone_resets(tmp_path: Path, begin: str, found: bool) -> None:
    assert ("MEM101" in codes_in(tmp_path, METER.format(begin=begin))) is found
