"""Running statistics that a function of the project computes from their previous value."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.linting import findings_in

PROGRAM = """
import torch
from torch import nn


def renew(x, mean, rate=0.1):
    {body}


class Center(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.mean = torch.zeros(width)

    def shifted(self, x):
        return x - self.mean

    def doubled(self, x):
        return 2 * x

    def forward(self, x):
        {statement}
        return {result}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(64, 64)
        self.center = Center(64)
        self.head = nn.Linear(64, 5)

    def forward(self, x):
        return self.head(self.center(self.body(x)))


def train(loader):
    net = Net().cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x in loader:
        net(x.cuda()).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
"""
ONE, TWO = "self.mean = renew(x, self.mean)", "y, self.mean = renew(x, self.mean)"
ANEW = "mean = (1 - rate) * mean + rate * x.mean(0)"


@pytest.mark.parametrize(
    ("body", "statement", "result", "expected"),
    [
        ("return (1 - rate) * mean + rate * x.mean(0)", ONE, "x", True),
        (f"{ANEW}\n    return mean", ONE, "x", True),
        (f"{ANEW}\n    return x - x.mean(0), mean", TWO, "y", True),
        (
            f"if not torch.is_grad_enabled():\n        return x - mean, mean\n    {ANEW}\n    return x, mean",
            TWO,
            "y",
            True,
        ),
        (f"{ANEW}\n    return x - x.mean(0), mean", "y, self.mean = renew(x=x, mean=self.mean)", "y", True),
        (f"{ANEW}\n    return mean.detach()", ONE, "x", False),
        (f"with torch.no_grad():\n        {ANEW}\n    return mean", ONE, "x", False),
        ("return (1 - rate) * mean + rate * x.detach().mean(0)", ONE, "x", False),
        # the next backward would run through the state, and raise: other code must cut it
        (f"{ANEW}\n    return mean", ONE, "x - self.mean", False),
        (f"{ANEW}\n    return mean", ONE, "self.shifted(x)", False),
        (f"{ANEW}\n    return mean", ONE, "self.doubled(x)", True),
        ("return torch.tanh(mean + x.mean(0))", ONE, "x - self.mean", False),
        ("return x, mean", TWO, "y", False),
    ],
)
def test_a_function_averages(tmp_path: Path, body: str, statement: str, result: str, expected: bool) -> None:
    program = PROGRAM.format(body=body, statement=statement, result=result)
    found = findings_in(tmp_path, program)
    assert any(one.code == "MEM103" and "host memory" in one.message for one in found) is expected
    assert {one.code for one in found} <= {"MEM103"}
