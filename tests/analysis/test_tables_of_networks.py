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


PACKAGE = """
from torch import nn

from .other import *
from .plain import Plain


class First(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(10, 10)

    def forward(self, x):
        return self.fc(x)
"""
OTHER = PACKAGE.replace("from .other import *", "").replace("from .plain import Plain", "").replace("First", "Second")
USER = """
import nets
from torch import nn


class Judge:
    def __init__(self, name):
        self.name = name
        self.{maker}()

    def {maker}(self):
        Net = {picked}
        self.part = Net()

    def judge(self, loader):
        crit = nn.MSELoss()
        total = 0
        for x, y in loader:
            total += crit(self.part(x.cuda()), y.cuda())
        print(total.item() / len(loader))
"""


@pytest.mark.parametrize(
    ("maker", "picked", "more", "expected"),
    [
        ("init_nets", "getattr(nets, self.name)", "", True),
        ("_build_networks", "nets.__dict__[self.name]", "", True),
        ("init_nets", "getattr(nets, self.name, None)", "", False),
        ("init_nets", "getattr(nets, self.name)", "def small(): return 1", False),
        ("change", "getattr(nets, self.name)", "", False),
    ],
)
def test_a_network_that_a_module_is_asked_for(
    tmp_path: Path, maker: str, picked: str, more: str, expected: bool
) -> None:
    (tmp_path / "nets").mkdir()
    (tmp_path / "nets" / "__init__.py").write_text(PACKAGE, encoding="utf-8")
    (tmp_path / "nets" / "other.py").write_text(f"{OTHER}\n\n{more}\n", encoding="utf-8")
    (tmp_path / "nets" / "plain.py").write_text("class Plain:\n    pass\n", encoding="utf-8")
    (tmp_path / "main.py").write_text(USER.format(maker=maker, picked=picked), encoding="utf-8")
    result = memlint.lint([tmp_path], isolated=True)
    assert not result.failures
    assert ("MEM101" in {one.code for one in result.findings}) == expected


RUNNERS = """
import torch
from torch import nn


class First(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(10, 10)

    def forward(self, x):
        return self.fc(x)


class Runner:
    def __init__(self):
        self.losses = []

    def add(self, loss):
        self.losses.append(loss)
"""
PICKED = """
import parts
from torch import nn


def train(name, net: nn.Module, loader, optimizer):
    runner = getattr(parts, name)()
    for x, y in loader:
        loss = nn.functional.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        runner.add(loss)
"""


def test_what_else_a_module_may_be_asked_for(tmp_path: Path) -> None:
    """A class beside the networks may be the one that is meant: what its methods keep is kept."""
    (tmp_path / "parts.py").write_text(RUNNERS, encoding="utf-8")
    (tmp_path / "main.py").write_text(PICKED, encoding="utf-8")
    assert "MEM102" in {one.code for one in memlint.lint([tmp_path], isolated=True).findings}
