"""Forwards that differentiate under a flag: an evaluation that switches this part off can have a guard."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.linting import codes_in

CODEC = """
import torch
from torch import nn


def penalty(x, score):
    (slope,) = torch.autograd.grad(score.sum(), x, create_graph=True)
    return (slope.norm(dim=1) - 1).pow(2).mean()


class Codec(nn.Module):
    def __init__(self):
        super().__init__()
        self.decode = nn.Linear(512, 512)
        self.judge = nn.Linear(512, 1)

    def forward(self, x, only_output=False, with_penalty=True):
        y = self.decode(x)
        if only_output:
            return y
        loss = (y - x).abs().mean()
        if with_penalty:
            x.requires_grad_()
            loss = loss + penalty(x, self.judge(x))
        return loss


def train(loader, held_out):
    codec = Codec().cuda()
    optimizer = torch.optim.Adam(codec.parameters())
    for step, x in enumerate(loader):
        codec.train()
        codec(x.cuda()).backward()
        optimizer.step()
        optimizer.zero_grad()
        if step % 100 == 0:
            codec.eval()
            for x in held_out:
                {shown}
"""


@pytest.mark.parametrize(
    ("shown", "found"),
    [
        ("print(codec(x.cuda(), only_output=True).detach().cpu())", True),
        ("print(codec(x.cuda(), True).detach().cpu())", True),
        ("print(codec(x.cuda(), with_penalty=False).item())", True),
        ("print(codec(x.cuda()).item())", False),
        ("print(codec(x.cuda(), only_output=step < 5).detach().cpu())", False),
        ("with torch.no_grad():\n                    print(codec(x.cuda(), only_output=True).cpu())", False),
    ],
)
def test_an_evaluation_without_the_penalty(tmp_path: Path, shown: str, found: bool) -> None:
    assert ("MEM201" in codes_in(tmp_path, CODEC.format(shown=shown))) is found


EXPLAINED = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Conv2d(3, 512, 3), nn.Linear(512, 10)

    def scores(self, x):
        return self.head(self.body(x).mean((2, 3)))

    def forward(self, x):
        return self.scores(x)

    def explain(self, x, wanted=True):
        x = x.requires_grad_(True)
        score = self.scores(x).max()
        {runs}
        return x.grad, score

    def differentiate(self, score):
        score.backward()


def explain_all(model: Net, loader):
    model.eval()
    found = []
    for x in loader:
        {call}
        found.append(score.argmax().item())
    return found
"""


@pytest.mark.parametrize(
    ("runs", "call", "found"),
    [
        ("score.backward()", "_, score = model.explain(x.cuda())", False),
        ("self.differentiate(score)", "_, score = model.explain(x.cuda())", False),
        ("score.backward()", "score = model.scores(x.cuda())", True),
        ("score.backward()", "score = model(x.cuda())", True),
    ],
)
def test_a_method_that_differentiates(tmp_path: Path, runs: str, call: str, found: bool) -> None:
    """A guard around the call of such a method would raise."""
    assert ("MEM201" in codes_in(tmp_path, EXPLAINED.format(runs=runs, call=call))) is found


STEPPED = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(512, 512)

    def loss(self, x, trains=True):
        loss = self.body(x).square().mean()
        if {test}:
            loss.backward()
        return loss


def validate(model: Net, loader):
    model.eval()
    return [model.loss(x.cuda(){given}).item() for x in loader]
"""


@pytest.mark.parametrize(
    ("test", "given", "found"),
    [("trains", ", trains=False", True), ("self.training", "", True), ("trains", "", False)],
)
def test_a_method_that_differentiates_to_train(tmp_path: Path, test: str, given: str, found: bool) -> None:
    """A validation that does not ask for the backward can have a guard."""
    assert ("MEM201" in codes_in(tmp_path, STEPPED.format(test=test, given=given))) is found
