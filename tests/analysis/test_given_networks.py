"""Networks that a function is given, beside those that an optimizer trains: MEM202 where all callers tell that no
optimizer has them."""

from __future__ import annotations

from pathlib import Path

import pytest
from linting import codes_in

DISTIL = """
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader
from library import optimizer_for, settle


def epoch(student, teacher, optimizer, loader):
    for x, y in loader:
        out = student(x.cuda())
        told = teacher({given})
        loss = F.mse_loss(out, told) + F.cross_entropy(out, y.cuda())
        optimizer.zero_grad()
        loss.backward()
        {after}
        optimizer.step()


def fit(student, teacher, optimizer, loader):
    for _ in range(10):
        epoch(student, teacher, optimizer, loader)


def warm_up(net, loader):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x, y in loader:
        loss = F.cross_entropy(net(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def main(loader: DataLoader):
    student, teacher = nn.Linear(8, 8).cuda(), nn.Linear(8, 8).cuda()
    {before}
    optimizer = {optimizer}
    {call}


main(DataLoader([]))
"""
OWN = "torch.optim.SGD(student.parameters(), lr=0.1)"
CALL = "fit(student, teacher, optimizer, loader)"


def codes(folder: Path, **parts: str) -> list[str]:
    given = {"given": "x.cuda()", "after": "pass", "before": "pass", "optimizer": OWN, "call": CALL} | parts
    return codes_in(folder, DISTIL.format(**given))


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({}, id="handed on"),
        pytest.param({"call": f"{CALL}\n    fit(student, teacher, optimizer, loader)"}, id="by both calls"),
        pytest.param({"before": "warm_up(student, loader)"}, id="the other one is trained before"),
    ],
)
def test_nobody_trains_the_teacher(tmp_path: Path, parts: dict[str, str]) -> None:
    assert codes(tmp_path, **parts) == ["MEM202"]


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param(
            {"optimizer": "torch.optim.SGD([*student.parameters(), *teacher.parameters()], lr=0.1)"}, id="both"
        ),
        pytest.param({"optimizer": "optimizer_for(student, teacher)"}, id="who knows whose parameters"),
        pytest.param({"optimizer": "optimizer_for(student)"}, id="no optimizer in sight"),
        pytest.param({"before": "settle(teacher)"}, id="code that cannot be followed has it"),
        pytest.param({"before": "warm_up(teacher, loader)"}, id="it is trained elsewhere"),
        pytest.param({"before": "teacher.requires_grad_(False)"}, id="it is frozen"),
        pytest.param({"given": "out"}, id="its input needs a gradient"),
        pytest.param({"after": "print(teacher.weight.grad)"}, id="its gradients are read"),
        pytest.param({"call": "settle(fit)"}, id="who knows who calls"),
        pytest.param(
            {"call": f"{CALL}\n    fit(teacher, student, optimizer, loader)"}, id="the other way round as well"
        ),
    ],
)
def test_somebody_may(tmp_path: Path, parts: dict[str, str]) -> None:
    assert "MEM202" not in codes(tmp_path, **parts)
