"""Assignments that should freeze a network and do nothing."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest
from linting import codes_in

found = functools.partial(codes_in, name="network.py")

CLASSIFIER = """
import torch
import torchvision
from torch import nn


class Classifier(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.backbone = torchvision.models.resnet50(weights="DEFAULT")
        {freeze}
        self.head = nn.Linear(1000, classes)

    def forward(self, x):
        {run}
        return self.head(x)
"""
OF_PARAMETERS = "for p in self.backbone.parameters(): p."


@pytest.mark.parametrize(
    ("freeze", "run", "codes"),
    [
        ("self.backbone.requires_grad = False", "x = self.backbone(x)", ["MEM203"]),
        ("self.backbone.requires_grad_ = False", "x = self.backbone(x)", ["MEM203"]),
        ("for m in self.backbone.children(): m.requires_grad = False", "x = self.backbone(x)", ["MEM203"]),
        (OF_PARAMETERS + "require_grad = False", "x = self.backbone(x)", ["MEM203"]),
        (OF_PARAMETERS + "requires_gradient = False", "x = self.backbone(x)", ["MEM203"]),
        (
            "for _, p in self.backbone.named_parameters(): p.requires_grads = False",
            "x = self.backbone(x)",
            ["MEM203"],
        ),
        # what torch reads
        (OF_PARAMETERS + "requires_grad = False", "x = self.backbone(x)", []),
        ("self.backbone.requires_grad_(False)", "x = self.backbone(x)", []),
        ("self.backbone.requires_grad = False; self.backbone.requires_grad_(False)", "x = self.backbone(x)", []),
        ("self.backbone.fc.weight.requires_grad = False", "x = self.backbone(x)", []),
        ("self.scale = nn.Parameter(torch.ones(1)); self.scale.requires_grad = False", "x = self.backbone(x)", []),
        ("self.backbone.requires_grad = False; outside.freeze(self.backbone)", "x = self.backbone(x)", []),
        ("self.backbone.requires_grad = False; torch.ones(2).requires_grad_()", "x = self.backbone(x)", ["MEM203"]),
        # by another way to the parameters
        (
            "self.backbone.requires_grad = False\n"
            "        for n, p in self.named_parameters(): p.requires_grad = 'head' in n",
            "x = self.backbone(x)",
            [],
        ),
        (
            "self.backbone.requires_grad = False; ps = [*self.backbone.parameters()]\n"
            "        for p in ps: p.requires_grad = False",
            "x = self.backbone(x)",
            [],
        ),
        (
            "for m in self.backbone.children():\n            m.requires_grad = False\n"
            "            for p in m.parameters(): p.requires_grad = False",
            "x = self.backbone(x)",
            [],
        ),
        (
            "self.backbone.requires_grad = False\n"
            "        for p in self.backbone.parameters(): setattr(p, 'requires_grad', False)",
            "x = self.backbone(x)",
            [],
        ),
        # nothing is recorded
        ("self.backbone.requires_grad = False", "with torch.no_grad(): x = self.backbone(x)", []),
        # the program reads the attribute
        (
            "self.backbone.requires_grad = False",
            "with torch.set_grad_enabled(self.backbone.requires_grad): x = self.backbone(x)",
            [],
        ),
        # a tensor that has no graph in any case
        ("table = torch.zeros(8); table.require_grad = False", "x = self.backbone(x)", []),
        # not turned off
        ("self.backbone.requires_grad = True", "x = self.backbone(x)", []),
        # never run here
        ("self.backbone.requires_grad = False", "", []),
    ],
)
def test_what_should_freeze_a_part_of_a_network(tmp_path: Path, freeze: str, run: str, codes: list[str]) -> None:
    assert found(tmp_path, CLASSIFIER.replace("{freeze}", freeze).replace("{run}", run)) == codes


STEP = """
import torch


def train(net, head, loader, criterion, optimizer):
    net.eval()
    {freeze}
    for x, y in loader:
        {loss}
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("freeze", "loss", "codes"),
    [
        ("net.requires_grad = False", "loss = criterion(head(net(x.cuda())), y.cuda())", ["MEM203"]),
        ("for p in net.parameters(): p.require_grad = False", "loss = criterion(net(x.cuda()), y.cuda())", ["MEM203"]),
        ("head.requires_grad = False", "loss = criterion(head(x.cuda()), y.cuda())", []),
    ],
)
def test_what_should_freeze_the_network_of_a_training_step(
    tmp_path: Path, freeze: str, loss: str, codes: list[str]
) -> None:
    assert found(tmp_path, STEP.replace("{freeze}", freeze).replace("{loss}", loss)) == codes


TRAINED = """
import torch


def train(net, loader, criterion, optimizer):
    for x, y in loader:
        loss = criterion(net(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    net.requires_grad = False
"""


def test_a_network_that_runs_before_it_should_be_frozen(tmp_path: Path) -> None:
    assert found(tmp_path, TRAINED) == []


@pytest.mark.parametrize("way", ["def", "class"])
def test_another_function_or_class_of_the_file_that_freezes_the_part(tmp_path: Path, way: str) -> None:
    freeze = "for p in net.backbone.parameters():\n            p.requires_grad = False\n"
    code = {
        "def": f"\ndef optimizer_of(net):\n    if net:\n        {freeze}",
        "class": f"\nclass Frozen(Classifier):\n    def __init__(net):\n        super().__init__(5)\n        {freeze}",
    }[way]
    network = CLASSIFIER.replace("{freeze}", "self.backbone.requires_grad = False")
    assert found(tmp_path, network.replace("{run}", "x = self.backbone(x)") + code) == []


EVALUATE = """
import torch


def accuracy(net, loader):
    net.eval()
    net.requires_grad = False
    return sum((net(x.cuda()).argmax(1).cpu() == y).sum().item() for x, y in loader)
"""


def test_an_evaluation_is_reported_once(tmp_path: Path) -> None:
    assert found(tmp_path, EVALUATE) == ["MEM201"]
