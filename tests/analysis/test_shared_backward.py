"""Backward runs that are not written where the graph is kept: behind a flag that nobody sets, or in the trainer."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint

FLAG = """
import torch
from torch import nn


class Learner:
    def __init__(self, model, optimizer):
        self.model = model
        self.optimizer = optimizer

    def update(self, x, y, learn=True):
        ratio = self.model(x) - y
        loss = ratio.pow(2).mean()
        if learn:
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
        return ratio

    def train(self, loader, learn=True):
        total = 0
        for x, y in loader:
            total += self.update(x, y, learn=learn).mean()
        return total


def main(loader, other, optimizer):
    learner = Learner(nn.Linear(8, 8), optimizer)
    learner.train(loader)
    {more}
"""


@pytest.mark.parametrize(
    ("more", "memory"),
    [
        ("learner.train(other)", "host"),
        ("learner.train(other, learn=True)", "host"),
        ("learner.train(other, learn=False)", "device-graph"),
        ("learner.train(other, learn=other.learn)", "device-graph"),
        # (whoever calls `train` learns, whatever another caller of `update` does)
        ("learner.update(next(other), None, learn=False)", "host"),
    ],
)
def test_a_flag_that_nobody_sets_turns_no_backward_off(tmp_path: Path, more: str, memory: str) -> None:
    (tmp_path / "learner.py").write_text(FLAG.format(more=more))
    found = memlint.lint([tmp_path], select=["MEM101"]).findings
    assert [item.growth.memory for item in found] == [memory]


AVERAGE = """
import torch
from torch import nn


class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.probe = nn.Linear(8, 8)
        self.register_buffer("mean", torch.zeros(8))

    def forward(self, x):
        mean = x.mean(0)
        self.mean[:] = self.mean * 0.9 + {added} * 0.1
        return (x - mean).relu()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 8)
        self.norm = Norm()

    def forward(self, x):
        return self.norm(self.layer(x))
"""


@pytest.mark.parametrize(("added", "memory"), [("mean", "host"), ("self.probe(x).mean(0)", "device-graph")])
def test_a_running_average_of_what_the_result_is_computed_from(tmp_path: Path, added: str, memory: str) -> None:
    (tmp_path / "net.py").write_text(AVERAGE.format(added=added))
    assert [(item.code, item.growth.memory) for item in memlint.lint([tmp_path]).findings] == [("MEM103", memory)]
