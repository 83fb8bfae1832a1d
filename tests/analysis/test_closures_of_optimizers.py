"""Closures that an optimizer runs many times in one step, and what they keep of each run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.linting import codes_in

PROGRAM = """
import torch
from torch import nn

{place}


def fit(x, y):
    net = nn.Sequential(nn.Linear(2, 50), nn.Tanh(), nn.Linear(50, 1)).cuda()
    optimizer = torch.optim.{optimizer}
    {local}

    def closure():
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(net(x), y)
        loss.backward()
        {keep}
        return loss

    {step}
    return net
"""


@pytest.mark.parametrize(
    ("place", "local", "keep", "step", "expected"),
    [
        ("kept = []", "pass", "kept.append(loss)", "optimizer.step(closure)", ["MEM102"]),
        ("", "kept = []", "kept.append(loss)", "optimizer.step(closure)", ["MEM102"]),
        ("", "kept = []", "kept.append(loss)", "optimizer.step(closure=closure)", ["MEM102"]),
        ("", "kept = []", "kept.append(loss)", "for _ in range(1000):\n        optimizer.step(closure)", ["MEM102"]),
        ("", "kept = []", "kept.append(loss.item())", "optimizer.step(closure)", []),
        ("", "pass", "kept = []\n        kept.append(loss)", "optimizer.step(closure)", []),
        ("", "kept = []", "kept.append(loss)", "closure()", []),
    ],
)
def test_list_of_losses(tmp_path: Path, place: str, local: str, keep: str, step: str, expected: list[str]) -> None:
    optimizer = "LBFGS(net.parameters(), max_iter=5000)"
    program = PROGRAM.format(place=place, local=local, keep=keep, step=step, optimizer=optimizer)
    assert codes_in(tmp_path, program) == expected


@pytest.mark.parametrize(
    ("optimizer", "expected"),
    [
        ("LBFGS(net.parameters(), max_iter=steps)", ["MEM102"]),
        ("LBFGS(net.parameters(), 0.1, 5000)", ["MEM102"]),
        # one step runs the closure a few times, or once
        ("LBFGS(net.parameters())", []),
        ("LBFGS(net.parameters(), max_iter=20)", []),
        ("Adam(net.parameters())", []),
    ],
)
def test_runs_of_one_step(tmp_path: Path, optimizer: str, expected: list[str]) -> None:
    step, keep = "optimizer.step(closure)", "kept.append(loss)"
    program = PROGRAM.format(place="", local="kept = []", keep=keep, step=step, optimizer=optimizer)
    assert codes_in(tmp_path, program.replace("fit(x, y)", "fit(x, y, steps)")) == expected


COUNTED = """
import torch
from torch import nn


def train(loader, epochs):
    net = nn.Linear(20, 5).cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    rounds, history, others = [0], [], []
    for x, y in loader:
        loss = nn.functional.cross_entropy(net(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        rounds[0] += 1
        history.append({kept})
    return history
"""


@pytest.mark.parametrize(
    ("kept", "expected"), [("(rounds[0], loss)", ["MEM102"]), ("(rounds[0], loss.item())", []), ("rounds[0]", [])]
)
def test_loss_beside_a_count(tmp_path: Path, kept: str, expected: list[str]) -> None:
    assert codes_in(tmp_path, COUNTED.format(kept=kept)) == expected


DRAWN = """
import torch
from torch import nn


@torch.no_grad()
def act(loader):
    policy, drawn = nn.Linear(20, {width}).cuda(), []
    for x in loader:
        drawn.append(torch.distributions.{kind}(logits=policy(x.cuda())).sample({shape}))
    return torch.cat(drawn).cpu()
"""


@pytest.mark.parametrize(
    ("kind", "shape", "expected"),
    [("Categorical", "", []), ("Categorical", "(100000,)", ["MEM104"]), ("Bernoulli", "", ["MEM104"])],
)
def test_numbers_of_classes(tmp_path: Path, kind: str, shape: str, expected: list[str]) -> None:
    assert codes_in(tmp_path, DRAWN.format(kind=kind, width=30000, shape=shape)) == expected
