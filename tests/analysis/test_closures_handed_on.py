"""Closures over what a model gives: handed to code that runs a backward, they train by it."""

from __future__ import annotations

from pathlib import Path

import pytest
from linting import codes_in

CLOSURES = """
import time
import torch
from torch import nn
from torch.nn import functional as F


def apply(function):
    function().backward()


def apply_in_turn(function):
    apply(function)


def timed(function):
    start = time.time()
    result = function()
    print(time.time() - start)
    return result


class Optimizer:
    def __init__(self, inner):
        self.inner = inner

    def minimize(self, closure):
        self.inner.zero_grad()
        closure().backward()
        self.inner.step()


def train(net: nn.Module, loader):
    net.eval()
    optimizer = Optimizer(torch.optim.SGD(net.parameters(), lr=0.1))
    for x, y in loader:
        out = net(x)
        {statement}
"""


@pytest.mark.parametrize(
    ("statement", "codes"),
    [
        ("apply(lambda: F.cross_entropy(out, y))", []),
        ("apply_in_turn(lambda: F.cross_entropy(out, y))", []),
        ("optimizer.minimize(lambda: F.cross_entropy(out, y))", []),
        ("timed(lambda: F.cross_entropy(out, y)).backward()", []),
        ("loss = timed(lambda: F.cross_entropy(out, y)); timed(lambda: loss.backward())", []),
        ("print(timed(lambda: F.cross_entropy(out, y).item()))", ["MEM201"]),
        ("apply(lambda: F.cross_entropy(x, y)); print(out.argmax(1))", ["MEM201"]),
    ],
)
def test_closures(tmp_path: Path, statement: str, codes: list[str]) -> None:
    assert codes_in(tmp_path, CLOSURES.format(statement=statement)) == codes
