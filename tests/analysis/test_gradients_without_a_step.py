"""A backward through networks that no optimizer steps is for their gradients; beside a network that one steps, nobody
needs those of the others."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.linting import codes_in

SOURCE = """
import copy
import torch
from torch import nn
from torch.nn.functional import cross_entropy, mse_loss
from library import adapter


class Scorer(nn.Module):
    def __init__(self, width=512):
        super().__init__()
        self.body = nn.Conv2d(3, width, 3)
        self.head = nn.Linear(width, 16)

    def forward(self, x):
        return self.head(self.body(x).mean((2, 3)))


class Top(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(16, 512), nn.ReLU(), nn.Linear(512, 16))

    def forward(self, x):
        return self.layers(x)


def losses_of(out, y, weight):
    main = cross_entropy(out, y)
    return {{"loss": main + weight * out.square().mean(), "main": main}}


def step(model, x, y):
    loss = cross_entropy(model(x), y)
    loss.backward()
    return loss.item()


def run(loader):
    model, top, trained, trained_top = Scorer().cuda(), Top().cuda(), Scorer().cuda(), Top().cuda()
    optimizer = torch.optim.SGD([*trained.parameters(), *trained_top.parameters()], lr=0.1)
    {before}
    for x, y in loader:
        x, y = x.cuda(), y.cuda()
        {body}
        optimizer.step()
    return optimizer
"""


def codes(folder: Path, body: str, before: str = "pass") -> list[str]:
    return codes_in(folder, SOURCE.format(body=body.replace("\n", "\n        "), before=before))


@pytest.mark.parametrize(
    ("body", "before"),
    [
        pytest.param("model(x).mean().backward()\nmodel.zero_grad()", "pass", id="a benchmark"),
        pytest.param("loss = cross_entropy(model(x), y)\nloss.backward()", "pass", id="a loss with labels"),
        pytest.param("out = model(x)\n((out * 2).sum() + out.mean()).backward()", "pass", id="two terms of one output"),
        pytest.param("mse_loss(model(x), model(x.flip(-1))).backward()", "pass", id="one network twice"),
        pytest.param("losses_of(model(x), y, 0.5)['loss'].backward()", "pass", id="losses of a function"),
        pytest.param(
            "cross_entropy(model(x), y).backward()\nassert model.head.weight.grad.abs().sum() > 0",
            "pass",
            id="a gradient is read",
        ),
        pytest.param(
            "cross_entropy(model(x), y).backward()\nnorm = nn.utils.clip_grad_norm_(model.parameters(), 1e9)",
            "pass",
            id="the norm of gradients",
        ),
        pytest.param(
            "cross_entropy(old(x), y).backward()\nfisher = {n: p.grad.square() for n, p in old.named_parameters()}",
            "old = copy.deepcopy(trained)",
            id="Fisher information of a copy",
        ),
        pytest.param("cross_entropy(old(x), y).backward()", "old = copy.deepcopy(trained)", id="a private copy"),
        pytest.param("cross_entropy(top(model(x)), y).backward()", "pass", id="two networks, neither trained"),
        pytest.param("step(model, x, y)", "pass", id="in a function"),
        pytest.param(
            "cross_entropy(model(x), y).backward()\ncross_entropy(trained(x), y).backward()",
            "pass",
            id="beside training",
        ),
    ],
)
def test_gradients_are_the_result(tmp_path: Path, body: str, before: str) -> None:
    assert codes(tmp_path, body, before) == []


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("mse_loss(trained(x), model(x)).backward()", id="a teacher"),
        pytest.param("out = model(x)\nmse_loss(trained(x), out.softmax(-1)).backward()", id="its probabilities"),
        pytest.param("cross_entropy(trained_top(model(x)), y).backward()", id="an encoder below a trained head"),
        pytest.param("cross_entropy(trained_top(model(x).relu()), y).backward()", id="with an operation between"),
        pytest.param("cross_entropy(adapter(model(x)), y).backward()", id="below what is unresolved"),
        pytest.param(
            "value = model(x).squeeze(-1)\nadvantage = y - value\n"
            "logp = torch.distributions.Categorical(logits=trained(x)).log_prob(y)\n"
            "(-(logp * advantage).mean() + 0.5 * advantage.square().mean()).backward()",
            id="a critic whose actor alone is stepped",
        ),
        pytest.param(
            "losses_of(trained(x) + model(x), y, 0.5)['loss'].backward()",
            id="a sum with what is trained, in a function",
        ),
        pytest.param("mse_loss(trained(x), model(x).detach()).backward()", id="detached: no backward reaches it"),
    ],
)
def test_gradients_beside_a_trained_network_are_not_wanted(tmp_path: Path, body: str) -> None:
    assert codes(tmp_path, body) == ["MEM202"]


CASE = """
import unittest
import torch
from torch import nn


class Scorer(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 4096), nn.ReLU(), nn.Linear(4096, 4096))
        self.value = nn.Sequential(nn.ReLU(), nn.Linear(4096, 1))

    def forward(self, x):
        out = self.body(x)
        return {{"code": out, "value": self.value(out).squeeze(-1)}}


class Learns(unittest.TestCase):
    def setUp(self):
        self.scorer, self.top = Scorer(), nn.Linear(4096, 8)
        self.optimizer = torch.optim.Adam(self.top.parameters())

    def test_it_learns(self):
        optimizer = torch.optim.Adam(self.top.parameters())
        self.top(torch.randn(8, 4096)).sum().backward()
        optimizer.step()

    def test_gradients(self):
        scorer = {made}
        for _ in range(3):
            out = scorer(torch.randn(64, 3))
            loss = {loss}
            loss.backward()
        self.assertIsNotNone(scorer.value[-1].weight.grad)
"""


@pytest.mark.parametrize("made", ["Scorer()", "self.scorer"])
@pytest.mark.parametrize("loss", ["out['value'].square().mean()", "sum(one.sum() for one in out.values())"])
def test_a_test_beside_one_that_trains(tmp_path: Path, made: str, loss: str) -> None:
    assert codes_in(tmp_path, CASE.format(made=made, loss=loss)) == []


AGENT = """
import torch
from torch import nn


class Agent:
    def __init__(self):
        self.encoder, self.head = nn.Linear(8, 4096).cuda(), nn.Linear(4096, 8).cuda()
        self.optimizer = torch.optim.Adam(self.head.parameters())

    def learn(self, loader):
        for x, y in loader:
            loss = nn.functional.cross_entropy({out}, y.cuda())
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
"""


@pytest.mark.parametrize(
    ("out", "told"), [("self.head(self.encoder(x.cuda()))", ["MEM202"]), ("self.encoder(x.cuda())", [])]
)
def test_attributes_of_an_object(tmp_path: Path, out: str, told: list[str]) -> None:
    assert codes_in(tmp_path, AGENT.format(out=out)) == told


SCRIPT = """
import torch
from torch import nn
from torch.utils.data import DataLoader
from data import Shards

loader = DataLoader(Shards(), batch_size=64)
{made}
optimizer = torch.optim.Adam(head.parameters())
for features, labels in loader:
    with torch.autocast("cuda"):
        loss = nn.functional.cross_entropy({out}, labels.cuda())
    loss.backward()
"""
MADE = "net, head = nn.Linear(64, 4096).cuda(), nn.Linear(4096, 64).cuda()"


@pytest.mark.parametrize(("out", "told"), [("head(net(features.cuda()))", ["MEM202"]), ("net(features.cuda())", [])])
def test_a_script(tmp_path: Path, out: str, told: list[str]) -> None:
    found = codes_in(tmp_path, SCRIPT.format(made=MADE, out=out))
    assert [code for code in found if code == "MEM202"] == told
