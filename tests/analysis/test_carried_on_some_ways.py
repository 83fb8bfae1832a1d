"""A place that is rebuilt on one way through a round, and cut on that same way, leads back to no earlier round."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint

LAYER = """
import torch
from torch import nn


class Multiplier(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(8, 8)
        self.register_buffer("scale", torch.zeros(8))

    def forward(self, x):
        loss = self.net(x)
        if self.training:
            self.scale = self.scale + loss.mean(0)
            {cut}
        {after}
        return loss + self.scale
"""


@pytest.mark.parametrize(
    ("cut", "after", "expected"),
    [
        ("pass", "pass", ["MEM103"]),
        ("self.scale.detach_()", "pass", []),
        ("self.scale = self.scale.detach()", "pass", []),
        ("pass", "self.scale = self.scale.detach()", []),
    ],
)
def test_a_buffer_that_training_updates(tmp_path: Path, cut: str, after: str, expected: list[str]) -> None:
    (tmp_path / "layer.py").write_text(LAYER.format(cut=cut, after=after))
    assert [found.code for found in memlint.lint(tmp_path).findings] == expected


GUARDED = """
from contextlib import contextmanager
import torch
from torch import nn


@contextmanager
def quiet():
    {guard}
        yield


@quiet()
def validate(loader, net: nn.Module):
    net.eval()
    for x, y in loader:
        print(net(x).argmax(1).eq(y).sum().item())
"""


@pytest.mark.parametrize(
    ("guard", "expected"), [("with torch.no_grad():", []), ("with torch.enable_grad():", ["MEM201"])]
)
def test_a_context_manager_that_decorates(tmp_path: Path, guard: str, expected: list[str]) -> None:
    (tmp_path / "valid.py").write_text(GUARDED.format(guard=guard))
    assert [found.code for found in memlint.lint(tmp_path).findings] == expected


BEST = """
import torch
from torch import nn


def train(net: nn.Module, loader, optimizer):
    best = None
    last = torch.zeros(1)
    for step, (x, y) in enumerate(loader):
        loss = nn.functional.mse_loss(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        {keep}
        print(best, last)
"""


@pytest.mark.parametrize(
    ("keep", "expected"),
    [
        pytest.param("best = loss.item() if step == 0 else best", [], id="a number, and itself"),
        pytest.param("best = loss if best is None or loss < best else best", [], id="what this round made, and itself"),
        pytest.param("last = last if step % 2 else last * 0.9 + loss", ["MEM103"], id="itself, and what is made of it"),
        pytest.param("last = last * 0.9 + loss if step % 2 else last", ["MEM103"], id="the other way round"),
    ],
)
def test_a_side_that_leaves_a_place_as_it_is(tmp_path: Path, keep: str, expected: list[str]) -> None:
    (tmp_path / "fit.py").write_text(BEST.format(keep=keep))
    found = memlint.lint(tmp_path, select=["MEM101", "MEM103"]).findings
    assert [one.code for one in found if one.code == "MEM103"] == expected


OWN = """
import torch
from torch import nn


class Fit:
    def __init__(self, net: nn.Module):
        self.net = net
        self.best = None

    def run(self, loader, optimizer):
        for step, (x, y) in enumerate(loader):
            loss = nn.functional.mse_loss(self.net(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            self.best = {first}
            if loss < self.best:
                self.best = loss
"""


@pytest.mark.parametrize(
    ("first", "expected"),
    [("loss.item() if step == 0 else self.best", []), ("loss if step == 0 else self.best * 0.9 + loss", ["MEM103"])],
)
def test_an_attribute_that_a_side_leaves_as_it_is(tmp_path: Path, first: str, expected: list[str]) -> None:
    (tmp_path / "fit.py").write_text(OWN.format(first=first))
    found = memlint.lint(tmp_path, select=["MEM103"]).findings
    assert sorted({one.code for one in found}) == expected


STATISTIC = """
import torch
from torch import nn


def blend(old, new, rate=0.1):
    return old * (1 - rate) + new * rate


class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 8)
        self.register_buffer("mean", torch.zeros(8))

    def renew(self, name, value):
        old = getattr(self, name)
        setattr(self, name, old * 0.9 + value * 0.1)

    def mix(self, value):
        old = self.mean
        self.mean = old * 0.9 + value * 0.1

    def forward(self, x):
        x = self.layer(x)
        mean = x.mean(0)
        {renewed}
        return x - self.mean
"""


@pytest.mark.parametrize(
    ("renewed", "carried"),
    [
        ('setattr(self, "mean", 0.9 * self.mean + 0.1 * mean)', True),
        ('self.register_buffer("mean", 0.9 * self.mean + 0.1 * mean)', True),
        ('self.renew("mean", mean)', True),
        ("self.mean = blend(self.mean, mean)", True),
        ('setattr(self, "mean", 0.9 * self.mean + 0.1 * mean.detach())', False),
        ('self.register_buffer("mean", mean)', False),
        ('self.renew("mean", mean.detach())', False),
        ("with torch.no_grad():\n            self.mix(mean)", False),
        ("self.mean = blend(self.mean.detach(), mean)", False),
        ("self.mean = self.find(self.mean, mean)", False),
        ("old = self.mean; self.mean = mean; x = x - self.mean; self.mean = old", False),
    ],
)
def test_statistics_that_are_renewed_by_name_or_by_a_helper(tmp_path: Path, renewed: str, carried: bool) -> None:
    (tmp_path / "norm.py").write_text(STATISTIC.format(renewed=renewed))
    assert [one.code for one in memlint.lint([tmp_path], isolated=True).findings] == ["MEM103"] * carried
