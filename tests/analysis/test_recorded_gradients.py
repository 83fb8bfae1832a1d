"""``create_graph=True``: where nothing differentiates the gradients, and where something may."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint


def found(tmp_path: Path, text: str) -> list[str]:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "code.py").write_text(text)
    return [one.severity for one in memlint.lint([tmp_path], isolated=True).findings if one.code == "MEM112"]


RESULT = """
import torch
from torch import autograd, nn
from torch.autograd import grad
from somewhere import consume


def attack(model, x, y, steps, flag=False):
    x = x.cuda()
    total = 0
    for step in range(steps):
        x.requires_grad_(True)
        loss = nn.functional.cross_entropy(model(x), y)
        g = {call}
        {use}
        x = x.detach()
    {behind}
"""


def result(tmp_path: Path, **parts: str) -> list[str]:
    fields = {
        "call": "torch.autograd.grad(loss, x, create_graph=True)[0]",
        "use": "x = x + g.detach().sign()",
        "behind": "return x.detach()",
        **parts,
    }
    return found(tmp_path, RESULT.format(**fields))


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("torch.autograd.grad(loss, x, create_graph=True)[0]", ["warning"]),
        ("autograd.grad(loss, x, create_graph=True, retain_graph=True)[0]", ["warning"]),
        ("grad(loss, [x], create_graph=True)[0].detach()", ["warning"]),
        ("grad(loss, x)[0]", []),
        ("grad(loss, x, create_graph=False)[0]", []),
        ("grad(loss, x, create_graph=model.training)[0]", []),
        ("consume(loss, x, create_graph=True)[0]", []),
    ],
)
def test_which_call(tmp_path: Path, call: str, expected: list[str]) -> None:
    assert result(tmp_path, call=call) == expected


@pytest.mark.parametrize(
    ("use", "expected"),
    [
        ("x = x + g.detach().sign()", ["warning"]),
        ("total += g.norm().item()", ["warning"]),
        ("total += float(g.abs().max())", ["warning"]),
        ("print(g.detach().cpu().numpy())", ["warning"]),
        ("(g.norm() - 1).square().backward()", []),
        ("h = grad(g.sum(), x)[0].detach(); total = h", []),
        ("consume(g)", []),
        ("total = total + g.square().mean()", []),
        ("model.kept = g", []),
    ],
)
def test_what_is_done_with_it(tmp_path: Path, use: str, expected: list[str]) -> None:
    assert result(tmp_path, use=use, behind="return x.detach(), total") == expected


CALLED = """
import torch


def gradient(y, x):
    return torch.autograd.grad(y.sum(), x, create_graph=True)[0]


def show(net, x):
    x.requires_grad_(True)
    return {shown}


{other}
"""


@pytest.mark.parametrize(
    ("shown", "other", "expected"),
    [
        ("gradient(net(x), x).detach()", "pass", ["note"]),
        ("gradient(net(x), x)", "pass", []),
        ("gradient(net(x), x).detach()", "def loss(net, x): return gradient(net(x), x).square().mean()", []),
        ("gradient(net(x), x).detach()", "OPERATORS = {'gradient': gradient}", []),
        ("consume(gradient, net, x)", "def look(net, x): return gradient(net(x), x).detach()", []),
    ],
)
def test_what_callers_do_with_it(tmp_path: Path, shown: str, other: str, expected: list[str]) -> None:
    assert found(tmp_path, CALLED.format(shown=shown, other=other)) == expected


FLAGGED = """
import torch


def product(ys, xs, v, detach=True):
    {before}
    out = torch.autograd.grad(ys, xs, v, create_graph=True)
    {after}
"""


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        ("return tuple(one.detach() for one in out) if detach else out", ["note"]),
        ("return [one.detach() for one in out] if detach else list(out)", ["note"]),
        ("return out[0].detach() if detach else out[0]", ["note"]),
        ("if detach: out = [one.detach() for one in out]\n    return out", ["note"]),
        ("return out if detach else tuple(one.detach() for one in out)", []),
        ("return tuple(one.detach() for one in out) if xs else out", ["note"]),
        ("return tuple(one.detach() for one in out) if len(xs) else out", []),
        ("print(out)\n    return tuple(one.detach() for one in out) if detach else out", []),
        ("if detach:\n        print(xs)\n        out = [one.detach() for one in out]\n    return out", []),
        ("return tuple(one.detach() + out[0] for one in out) if detach else out", []),
    ],
)
def test_a_flag_that_cuts_it(tmp_path: Path, after: str, expected: list[str]) -> None:
    assert found(tmp_path, FLAGGED.format(before="pass", after=after)) == expected


STEP = """
import torch
from torch import nn
from somewhere import Hessian, unroll


def train(model, loader, other):
    optimizer = {optimizer}
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        {backward}
        {then}
        {step}
"""


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ({}, ["warning"]),
        ({"backward": "loss.backward(create_graph=True, retain_graph=True)"}, ["warning"]),
        ({"then": "nn.utils.clip_grad_norm_(model.parameters(), 1.0)"}, ["warning"]),
        ({"then": "for p in model.parameters(): print(p.grad.norm().item())"}, ["warning"]),
        ({"backward": "loss.backward(create_graph=False)"}, []),
        ({"backward": "loss.backward(create_graph=True, inputs=[model.weight])"}, []),
        ({"optimizer": "Hessian(model.parameters())"}, []),
        ({"step": "other.step()"}, []),
        ({"step": "unroll(model)"}, []),
        ({"then": "sum(p.grad.square().sum() for p in model.parameters()).backward()"}, []),
        ({"then": "norm = model.weight.grad.norm(); norm.backward()"}, []),
        ({"then": "unroll(model, loss)"}, []),
    ],
)
def test_gradients_of_parameters(tmp_path: Path, parts: dict[str, str], expected: list[str]) -> None:
    fields = {
        "optimizer": "torch.optim.SGD(model.parameters(), lr=0.1)",
        "backward": "loss.backward(create_graph=True)",
        "then": "pass",
        "step": "optimizer.step()",
        **parts,
    }
    assert found(tmp_path, STEP.format(**fields)) == expected


def test_an_optimizer_of_the_instance(tmp_path: Path) -> None:
    text = """
import torch


class Trainer:
    def __init__(self, net):
        self.net = net
        self.optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    def step(self, x):
        self.net(x).mean().backward(create_graph=True)
        self.optimizer.step()
"""
    assert found(tmp_path, text) == ["warning"]
