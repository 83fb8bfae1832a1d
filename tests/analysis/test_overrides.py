"""A call that may mean several methods: each frees what it made, and what it gives is unpacked by its length."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint

AGENTS = """
import torch


class Agent:
    def __init__(self, model):
        self.model = model
        self.result = None

    def step(self, x):
        pass

    def fit(self, loader):
        losses, gaps = [], []
        for x, _ in loader:
            loss, gap = self.step(x.cuda())
            losses.append(loss)
            gaps.append(gap)
        print(len(losses), len(gaps))


class Short(Agent):
    def step(self, x):
        loss = self.model(x).mean()
        loss.backward()
        with torch.no_grad():
            gap = loss * 2
        self.result = (loss, gap)
        return self.result


class Long(Agent):
    def step(self, x):
        loss = self.model(x).square().mean()
        {backward}
        with torch.no_grad():
            gap = loss * 2
        self.result = (gap, loss, loss)
        return self.result
"""


@pytest.mark.parametrize("backward", ["loss.backward()", pytest.param("pass", id="of a method whose three do not fit")])
def test_each_override_frees_what_it_made(tmp_path: Path, backward: str) -> None:
    (tmp_path / "agents.py").write_text(AGENTS.format(backward=backward))
    said = [one for one in memlint.lint([tmp_path], isolated=True).findings if one.code == "MEM102"]
    assert [(one.message.split("`")[1], one.severity) for one in said] == [("losses", "warning")]


DECLARED = """
from abc import ABC, abstractmethod
from typing import Any

import torch
from torch import nn


class Criterion(ABC):
    @abstractmethod
    def __call__(self, x, outputs): ...


class Wrong(Criterion):
    def __init__(self, labels):
        self.labels = labels

    def __call__(self, x, outputs):
        return outputs.argmax(-1) != self.labels


class Other(Criterion):
    def __init__(self, labels):
        self.labels = labels

    def __call__(self, x, outputs):
        {gives}


def evaluate(net: nn.Module, loader, criterion: {declared}):
    {anew}

    def check(x):
        return criterion(x, net(x))

    net.eval()
    found = []
    for x, _ in loader:
        adversarial = check(x.cuda())
        found.append(adversarial)
    return torch.cat(found).float().mean().item()
"""


@pytest.mark.parametrize(
    ("gives", "declared", "anew", "told"),
    [
        ("return outputs.argmax(-1) == self.labels", "Criterion", "pass", set()),
        ("return outputs.max(-1).values.detach()", "Criterion", "pass", set()),
        ("return outputs.argmax(-1) == self.labels", '"Criterion"', "pass", set()),
        ("return outputs.max(-1).values", "Criterion", "pass", {"MEM102"}),
        ("return outputs", "Criterion", "pass", {"MEM102"}),
        ("return outputs.argmax(-1) == self.labels", "Criterion", "criterion = nn.NLLLoss()", {"MEM102"}),
        ("return outputs.argmax(-1) == self.labels", "nn.Module", "pass", {"MEM102"}),
    ],
)
def test_what_the_parameter_of_the_function_around_is_declared_to_be(
    tmp_path: Path, gives: str, declared: str, anew: str, told: set[str]
) -> None:
    (tmp_path / "main.py").write_text(DECLARED.format(gives=gives, declared=declared, anew=anew))
    found = memlint.lint([tmp_path], isolated=True, min_confidence="low").findings
    assert {one.code for one in found} - {"MEM201"} == told
