"""A method that only a module's forward calls runs under whatever grad mode the forward's caller has."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint

NET = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.front = nn.Linear(8, 8)
        self.back = nn.Linear(8, 2)

    def forward(self, x):
        if self.training:
            return self.back(self.front(x))
        return self._inference(x)

    def _inference(self, x):
        scores = self.back(self.front(x))
        for row in scores:
            print(row.sum().item())
        return None
{more}
"""

CALLED = """
    def infer_all(self, batches):
        self.eval()
        for x in batches:
            self._inference(x)
"""


@pytest.mark.parametrize(("more", "codes"), [("", set()), (CALLED, {"MEM201"})])
def test_a_part_of_a_forward(tmp_path: Path, more: str, codes: set[str]) -> None:
    (tmp_path / "net.py").write_text(NET.format(more=more))
    assert {found.code for found in memlint.lint([tmp_path]).findings} == codes


LAYERS = """
from typing import List

import torch
from torch import nn


class Detector:
    def __init__(self, layers: {annotation}):
        self.layers = layers

    def predict(self, x):
        self.eval()
        kept = []
        for i in range(len(self.layers)):
            part = nn.Sequential(*self.layers[: i + 1])
            kept.append(part(x).mean(dim=(2, 3)))
        return torch.cat(kept).tolist()
"""


@pytest.mark.parametrize("annotation", ["List[nn.Module]", "nn.ModuleList", "nn.Sequential"])
def test_a_loop_that_counts_layers(tmp_path: Path, annotation: str) -> None:
    (tmp_path / "detector.py").write_text(LAYERS.format(annotation=annotation))
    assert "MEM102" not in {found.code for found in memlint.lint([tmp_path]).findings}


CHOSEN = """
import torch


def train(model, loader, optimizer, learned):
    scale = torch.nn.Parameter(torch.ones(())) if learned else 1.0
    shown = []
    for x in loader:
        loss = (model(x) * scale).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        shown.append({value})
    return shown
"""


@pytest.mark.parametrize(
    ("value", "codes"),
    [("scale.item() if learned else scale", set()), ("loss if learned else scale", {"MEM102"})],
)
def test_what_is_no_tensor_where_it_is_not_asked_for_its_item(tmp_path: Path, value: str, codes: set[str]) -> None:
    (tmp_path / "train.py").write_text(CHOSEN.format(value=value))
    assert {found.code for found in memlint.lint([tmp_path]).findings} == codes


GIVEN = """
import torch


def evaluate(Model: torch.nn.Module, env, steps, path):
    agent = Model(env).cuda()
    agent.load_state_dict(torch.load(path, map_location="cpu"))
    agent.eval()
    total = 0.0
    for _ in range(steps):
        with torch.no_grad():
            total += env.step(agent(env.state())).item()
    return total
"""


def test_a_class_that_is_passed_makes_a_model(tmp_path: Path) -> None:
    (tmp_path / "evaluate.py").write_text(GIVEN)
    assert [found.code for found in memlint.lint([tmp_path]).findings] == []


CLEARED = """
import torch


def infer(model, queue):
    model.eval()
    best = []
    for x in queue:
        {statement}
        best.extend(model.predict(x.cuda()).tolist())
    return best
"""


@pytest.mark.parametrize(("statement", "codes"), [("model.zero_grad()", []), ("pass", ["MEM201"])])
def test_gradients_that_are_cleared_are_made_somewhere(tmp_path: Path, statement: str, codes: list[str]) -> None:
    (tmp_path / "infer.py").write_text(CLEARED.format(statement=statement))
    assert [found.code for found in memlint.lint([tmp_path]).findings] == codes


MEMORY = """
import torch
from torch import nn


class Part(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(8))
        self.register_buffer("labels", torch.zeros(100, 8))
        self.register_buffer("total", torch.zeros(8))

    def forward(self, x, y, index):
        {statement}
        return (x - self.mean) @ self.labels.t() + self.total.sum()
"""


@pytest.mark.parametrize(
    ("statement", "codes"),
    [
        ("self.mean = 0.9 * self.mean + 0.1 * x.mean(0)", {"MEM103"}),
        ("self.mean.mul_(0.9).add_(0.1 * x.mean(0))", {"MEM103"}),
        ("self.labels[index, :] = y.float()", set()),
        ("self.total += x.sum(0)", set()),
        ("self.total += nn.functional.linear(x, self.weight).sum(0)", {"MEM103"}),
    ],
)
def test_what_comes_into_a_forward_may_be_data(tmp_path: Path, statement: str, codes: set[str]) -> None:
    source = MEMORY.format(statement=statement)
    if "weight" in statement:
        made = '        self.register_buffer("mean"'
        source = source.replace(made, "        self.weight = nn.Parameter(torch.ones(8, 8))\n" + made)
    (tmp_path / "part.py").write_text(source)
    assert {found.code for found in memlint.lint([tmp_path]).findings} == codes


CENTERS = """
import torch
from torch import nn


class {name}(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("centers", torch.zeros(10, 8))

    def forward(self, z, y):
        self.centers[y] = {value}
        return ((z - self.centers[y]) ** 2).mean()
"""


@pytest.mark.parametrize(
    ("name", "value", "codes"),
    [
        ("CenterLoss", "z", {"MEM103"}),
        ("CenterLoss", "y.float()[:, None]", set()),
        ("Centers", "z", set()),
    ],
)
def test_a_loss_is_given_what_a_model_made_and_labels(tmp_path: Path, name: str, value: str, codes: set[str]) -> None:
    (tmp_path / "loss.py").write_text(CENTERS.format(name=name, value=value))
    assert {found.code for found in memlint.lint([tmp_path]).findings} == codes


COLLECTS = """
import torch
from torch import nn
from somewhere import build


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRU(8, 8)
        self.rows = None

    def forward(self, x):
        return self.cell(x)[0]

    def collect(self, {name}):
        rows = []
        for part in {name}:
            rows.append(self.cell(part)[0])
        self.rows = torch.cat(rows){cut}


def train(loader):
    net = Net().cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(10):
        net.collect({given})
        for x in loader:
            loss = net(x.cuda()).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


train(torch.utils.data.DataLoader([]))
"""


@pytest.mark.parametrize(("name", "codes"), [("data_iterator", {"MEM102"}), ("steps", set())])
def test_a_method_that_goes_through_data(tmp_path: Path, name: str, codes: set[str]) -> None:
    """What a module's own method keeps of each batch of a data set is no list of a forward's layers."""
    (tmp_path / "net.py").write_text(COLLECTS.format(name=name, given="build()", cut=".detach()"))
    told = {found.code for found in memlint.lint([tmp_path]).findings}
    assert told & {"MEM102"} == codes
