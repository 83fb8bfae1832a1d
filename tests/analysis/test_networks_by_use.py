"""Networks that are known by what is done with them, and who may guard what they compute."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.linting import codes_in

OWNER = """
import torch
from options import get, keep


class Controller:
    def __init__(self, options):
        self.model = get(options, "constructor")(options)

    def train(self, data, epochs):
        for _ in range(epochs):
            for x, y in data:
                mean = self.model(x.cuda())
                loss = ((mean - y.cuda()) ** 2).mean() + self.model.decay()
                self.model.{optimizer}.zero_grad()
                loss.backward()
                self.model.{optimizer}.step()
            mean = self.model(data.all.cuda())
            print({used})


Controller({{}}).train(torch.utils.data.DataLoader(range(9)), 100)
"""


def test_what_is_called_and_has_an_optimizer_is_a_network(tmp_path: Path) -> None:
    source = OWNER.format(optimizer="optim", used="mean.detach().cpu().numpy()")
    assert codes_in(tmp_path, source) == ["MEM201"]


@pytest.mark.parametrize(
    ("optimizer", "used"),
    [("timer", "mean.detach().cpu().numpy()"), ("optim", "keep(mean)")],
)
def test_no_network_is_known(tmp_path: Path, optimizer: str, used: str) -> None:
    assert codes_in(tmp_path, OWNER.format(optimizer=optimizer, used=used)) == []


HANDED = """
import torch
from torch import nn


class Search:
    def __init__(self, cost):
        self.costs = {{"first": cost}}

    def best(self, candidates, name="first"):
        {guard}
        return self.costs[name](candidates)


class Planner:
    def __init__(self, model: nn.Module):
        self.model = model.eval()
        self.search = Search(self.predict)

    def predict(self, candidates):
        total = 0.0
        for row in candidates:
            total += self.model(row.cuda()).detach().cpu().numpy()
        return total


print(Planner(nn.Linear(3, 4).cuda()).search.best(torch.utils.data.DataLoader(range(9))))
"""


def test_who_gets_a_function_guards_nothing_where_nobody_does(tmp_path: Path) -> None:
    assert codes_in(tmp_path, HANDED.format(guard="pass")) == ["MEM201"]
    assert codes_in(tmp_path, HANDED.format(guard="torch.set_grad_enabled(False)")) == []


REDUCED = """
import functools
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 3)])

    def forward(self, x):
        return functools.reduce({step}, self.layers, x)


def validate(net: Net, loader):
    net.eval()
    return [net(x.cuda()).argmax(1).tolist() for x in loader]


print(validate(Net().cuda(), torch.utils.data.DataLoader(range(9))))
"""


def test_layers_run_in_a_reduction(tmp_path: Path) -> None:
    assert codes_in(tmp_path, REDUCED.format(step="lambda x, layer: layer(x)")) == ["MEM201"]
    assert codes_in(tmp_path, REDUCED.format(step="lambda x, layer: x.cpu()")) == []


PLACED = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.linear = nn.Linear(3, n)
        self.scale = {scale}

    def forward(self, x):
        return {{"mean": self.linear(x), "rates": nn.functional.linear(x, self.scale).exp()}}


@torch.no_grad()
def generate(net: Net, loader):
    net.eval().cuda()
    found = []
    for x in loader:
        out = net(x)
        found.append(torch.distributions.Normal(out["mean"], out["rates"]).sample())
    return torch.cat(found).cpu().numpy()


print(generate(Net(8), torch.utils.data.DataLoader(range(9))))
"""


def test_parameters_are_where_their_module_is(tmp_path: Path) -> None:
    assert codes_in(tmp_path, PLACED.format(scale="nn.Parameter(torch.randn(n))")) == ["MEM104"]
    assert codes_in(tmp_path, PLACED.format(scale="torch.randn(n)")) == []
