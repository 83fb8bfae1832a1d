"""Evaluations beside code that wants gradients of something else, and methods of the object of a method around."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.linting import codes_in

HEAD = """
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader


def load():
    return DataLoader(torch.load("data.pt"), batch_size=32)

"""

ATTACK = """
def attack(model, x, y):
    changed = x.detach().clone().requires_grad_(True)
    loss = F.cross_entropy(model(changed), y)
    grad = torch.autograd.grad(loss, changed)[0]
    return (changed + 0.01 * grad.sign()).detach()


def measure(model, loader):
    model.eval()
    right = 0
    for x, y in loader:
        x, y = x.cuda(), y.cuda()
        other = attack(model, x, y)
        right += (model(other).argmax(1) == y).float().mean().item()
    return right


print(measure(nn.Linear(8, 8).cuda(), load()))
"""

#: the callee differentiates the graph of the caller's run
PENALTY = """
def penalty(out, x):
    return torch.autograd.grad(out.sum(), x)[0].norm().item()


def measure(model, loader):
    model.eval()
    total = 0
    for x, y in loader:
        x = x.cuda().requires_grad_()
        total += penalty(model(x), x)
    return total


print(measure(nn.Linear(8, 8).cuda(), load()))
"""

#: one that may keep the graph for another call
KEPT = PENALTY.replace("out.sum(), x)", "out.sum(), x, retain_graph=True)")


def test_an_attack_wants_only_its_own_graph(tmp_path: Path) -> None:
    assert "MEM201" in codes_in(tmp_path, HEAD + ATTACK)


@pytest.mark.parametrize("text", [PENALTY, KEPT])
def test_a_callee_that_differentiates_the_callers_run(tmp_path: Path, text: str) -> None:
    assert "MEM201" not in codes_in(tmp_path, HEAD + text)


CLOSURE = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(8, 8)

    def forward(self, x):
        return self.lin(x)

    def validater(self, loader):
        {other}

        def validate():
            x, y = loader.next_batch()
            return F.cross_entropy({owner}(x.cuda()), y.cuda())

        return validate


def main(loader):
    validate = Net().cuda().validater(loader)
    for i in range(1000):
        print(validate().data.cpu().numpy())
"""


@pytest.mark.parametrize(
    ("other", "owner", "found"),
    [("pass", "self", True), ("self = loader", "self", False), ("pass", "loader", False)],
)
def test_the_object_of_the_method_around(tmp_path: Path, other: str, owner: str, *, found: bool) -> None:
    assert ("MEM201" in codes_in(tmp_path, HEAD + CLOSURE.format(other=other, owner=owner))) is found


def test_what_a_starred_parameter_collects_is_no_object(tmp_path: Path) -> None:
    source = CLOSURE.format(other="pass", owner="self[1]").replace(
        "def validater(self, loader)", "def validater(*self)"
    )
    assert "MEM201" not in codes_in(tmp_path, HEAD + source.replace("loader.next_batch()", "self[2].next_batch()"))
