"""Networks that are picked by name out of a table of classes or of a library's package."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint

HEAD = """
import torch
from torch import nn
import torchvision.models as models


class First(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(10, 10)

    def forward(self, x):
        return self.fc(x)


class Second(First):
    pass


class OneLoss(nn.Module):
    def forward(self, x, y):
        return (x - y).mean()


class Plain:
    def __call__(self, x):
        return x + 1


NETS = {"first": First, "second": Second}
MIXED = {"first": First, "plain": Plain}
LOSSES = {"one": OneLoss}


def validate(loader, name, other):
    picked = MAKER
    crit = nn.MSELoss()
    total = 0
    for x, y in loader:
        total += crit(picked(x.cuda()), y.cuda())
    print(total.item() / len(loader))
"""


@pytest.mark.parametrize(
    ("maker", "expected"),
    [
        ("NETS[name]()", True),
        ("NETS.get(name)()", True),
        ("models.__dict__[name](num_classes=10)", True),
        ("MIXED[name]()", False),
        ("LOSSES[name]()", False),
        ("other.__dict__[name]()", False),
    ],
)
def test_a_network_out_of_a_table(tmp_path: Path, maker: str, expected: bool) -> None:
    (tmp_path / "main.py").write_text(HEAD.replace("MAKER", maker), encoding="utf-8")
    result = memlint.lint([tmp_path], isolated=True)
    assert not result.failures
    assert ("MEM101" in {one.code for one in result.findings}) == expected
