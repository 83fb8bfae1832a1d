"""Losses that come to the backward by a global, a variable around closures, or one generator after another."""

from __future__ import annotations

from pathlib import Path

import pytest
from linting import codes_in

HEAD = """
import torch
from torch import nn
from torch.nn import functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Linear(32, 10)

    def forward(self, x):
        return self.f(x)

"""

GLOBAL = """
LOSS = None


def compute(net, x, y):
    global LOSS
    LOSS = F.cross_entropy(net(x), y)


def train(loader):
    net = Net().cuda()
    net.eval()
    for x, y in loader:
        compute(net, x, y)
        {statement}
"""

CLOSURE = """
def train(loader):
    net = Net().cuda()
    net.eval()
    loss = None

    def compute(x, y):
        nonlocal loss
        loss = F.cross_entropy(net(x), y)

    def back():
        {statement}

    for x, y in loader:
        compute(x, y)
        back()
"""

GENERATORS = """
def outputs(net: nn.Module, loader):
    net.eval()
    for x, y in loader:
        yield net(x), y


def losses(pairs):
    for out, y in pairs:
        yield F.cross_entropy(out, y)


def train(loader):
    net = Net().cuda()
    for loss in losses(outputs(net, loader)):
        {statement}
"""

OBJECT = """
class Epoch:
    def __init__(self, net: Net, loader):
        self.net, self.loader = net, loader

    def __iter__(self):
        self.net.eval()
        for x, y in self.loader:
            {value}


def train(loader):
    for loss in Epoch(Net().cuda(), loader):
        print(loss)
"""


def found(tmp_path: Path, source: str) -> list[str]:
    return codes_in(tmp_path, HEAD + source)


@pytest.mark.parametrize(
    ("source", "back", "number"),
    [
        pytest.param(GLOBAL, "LOSS.backward()", "print(LOSS.item())", id="global"),
        pytest.param(CLOSURE, "loss.backward()", "print(loss.item())", id="closure"),
        pytest.param(GENERATORS, "loss.backward()", "print(loss.item())", id="generators"),
    ],
)
def test_ways_to_the_backward(tmp_path: Path, source: str, back: str, number: str) -> None:
    assert found(tmp_path, source.replace("{statement}", back)) == []
    assert found(tmp_path, source.replace("{statement}", number)) == ["MEM201"]


def test_an_object_that_gives_out_what_it_computes(tmp_path: Path) -> None:
    given, kept = "yield F.cross_entropy(self.net(x), y)", "print(self.net(x).argmax(1)); yield y"
    assert found(tmp_path, OBJECT.replace("{value}", given)) == []
    assert found(tmp_path, OBJECT.replace("{value}", kept)) == ["MEM201"]
