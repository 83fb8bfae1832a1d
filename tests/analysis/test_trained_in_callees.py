"""A run whose output is cut, beside a call that trains, whatever that trains on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.linting import codes_in

PROGRAM = """
import torch
from torch import nn
from torch.autograd import Variable


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Conv2d(3, 512, 3)

    def forward(self, x):
        return self.layer(x)


def step(model, x, y, optimizer, criterion):
    loss = criterion(model({}), y.cuda())
    optimizer.zero_grad()
    {}
    optimizer.step()


class Learner(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = Net()

    def learn(self, x, y, optimizer, criterion):
        step(self.net, x, y, optimizer, criterion)
        return self.net(x).argmax(1)

    def fit(self, loader, optimizer, criterion):
        for x, y in loader:
            print(self.learn(x, y, optimizer, criterion))
"""


@pytest.mark.parametrize(
    ("given", "trains", "expected"),
    [
        ("x.cuda()", "loss.backward()", ["MEM202"]),
        ("Variable(x.cuda())", "loss.backward()", ["MEM202"]),
        ("torch.randn(8, 3, 32, 32).cuda()", "loss.backward()", ["MEM202"]),
        ("Variable(x.cuda())", "print(loss.item())", []),
    ],
)
def test_a_run_beside_a_step_of_training(tmp_path: Path, given: str, trains: str, expected: list[str]) -> None:
    found = codes_in(tmp_path, PROGRAM.format(given, trains))
    assert [code for code in found if code == "MEM202"] == expected


STEPS_OF_A_NETWORK = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Conv2d(3, 512, 3)
        self.head = nn.Linear(512, 10)
        self.scaler = None

    def losses(self, x, y):
        return {{"loss": nn.functional.cross_entropy(self.head(self.body(x).mean((2, 3))), y)}}

    def forward_backward(self, x, y):
        losses = self.losses(x, y)
        self.run_backward(losses["loss"])
        return losses

    def run_backward(self, loss):
        if self.scaler is not None:
            self.scaler.scale(loss).backward()
        else:
            loss.backward()


def train(loader):
    model = Net().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        {before}
        losses = model.{method}(x.cuda(), y.cuda())
        optimizer.step()
        print({{name: loss.item() for name, loss in losses.items()}})
"""


@pytest.mark.parametrize(
    ("before", "method", "expected"),
    [
        ("pass", "forward_backward", []),
        ("model.forward_backward(x.cuda(), y.cuda())", "losses", ["MEM201"]),
    ],
)
def test_a_method_that_runs_the_backward_of_its_network(
    tmp_path: Path, before: str, method: str, expected: list[str]
) -> None:
    found = codes_in(tmp_path, STEPS_OF_A_NETWORK.format(before=before, method=method))
    assert [code for code in found if code in ("MEM201", "MEM202")] == expected
