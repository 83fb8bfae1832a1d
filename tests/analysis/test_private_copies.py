"""Copies of a network that a function makes for itself: nobody trains what nobody else has."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.linting import codes_in

SOURCE = """
import copy

import torch
from torch import nn
from tools import watch


class Policy(nn.Module):
    def __init__(self, n, body=None):
        super().__init__()
        self.layers = nn.Linear(n, n)
        self.scale = nn.Parameter(torch.ones(n))
        {kept}

    def forward(self, x):
        return self.layers(x) * self.scale


def train(policy: Policy, optimizer, loader, n, body):
    {made}
    for x in loader:
        x = x.cuda()
        before = old({given})
        ratio = policy(x) / before
        optimizer.zero_grad()
        (-ratio.mean()).backward()
        optimizer.step()
        {then}


{caller}
"""
LOADED = """old = Policy(n, body).cuda()
    old.load_state_dict(policy.state_dict())"""

CALLER = """def attack(policy: Policy, optimizer, loader, n):
    images = [x.requires_grad_(True) for x in loader]
    train(policy, optimizer, images, n, None)"""


def found(folder: Path, **parts: str) -> list[str]:
    usual = {"kept": "pass", "made": LOADED, "given": "x", "then": "pass", "caller": ""}
    return codes_in(folder, SOURCE.format(**{**usual, **parts}))


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({}, id="its weights"),
        pytest.param({"then": "old.load_state_dict(policy.state_dict())"}, id="its weights, again and again"),
        pytest.param({"made": "old = copy.deepcopy(policy)"}, id="all of it"),
        pytest.param({"made": "old = copy.deepcopy(policy)\n    old = old.cuda()\n    old.train()"}, id="placed"),
    ],
)
def test_nobody_trains_a_copy(tmp_path: Path, parts: dict[str, str]) -> None:
    assert found(tmp_path, **parts) == ["MEM202"]


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({"given": "x.clone().requires_grad_(True)"}, id="what it is given requires grad"),
        pytest.param({"caller": CALLER}, id="what a caller gives requires grad"),
        pytest.param({"given": "policy(x)"}, id="the gradient goes through it"),
        pytest.param({"given": "policy.scale * x"}, id="a parameter of another is given"),
        pytest.param({"kept": "self.body = body"}, id="it holds what it was given"),
        pytest.param({"made": f"{LOADED}\n    watch(old)"}, id="it is handed on"),
        pytest.param({"made": f"{LOADED}\n    both = [old, policy]"}, id="it is in a list"),
        pytest.param({"made": f"{LOADED}\n    other = torch.optim.SGD(old.parameters(), 1e-3)"}, id="it is trained"),
        pytest.param({"made": f"{LOADED}\n    old.layers.bias.data.zero_()"}, id="a part of it is reached"),
        pytest.param({"made": f"{LOADED}\n    old.requires_grad_(False)"}, id="it is frozen"),
        pytest.param({"made": f"{LOADED}\n    other = old.cuda()"}, id="it has another name"),
        pytest.param({"made": "old = Policy(n, body).cuda()"}, id="it is no copy"),
        pytest.param({"made": "old = copy.deepcopy(body)"}, id="a copy of what may be frozen"),
        pytest.param({"made": LOADED, "then": "print(lambda: old.scale.grad)"}, id="its gradients are read"),
    ],
)
def test_somebody_may_train_it(tmp_path: Path, parts: dict[str, str]) -> None:
    assert found(tmp_path, **parts) == []
