"""Losses that a list or a table holds: what one of them records is what it compares, and no evaluation of a model."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint

TRAINER = """
import torch
from torch import nn


class Trainer:
    def __init__(self, model, teacher, {name}, optimizer):
        self.model, self.optimizer = model.train(), optimizer
        self.teacher = teacher.eval()
        self.{name} = nn.ModuleList({name})

    def train(self, loader):
        shown = 0.0
        for x, target in loader:
            with torch.no_grad():
                told = self.teacher(x)
            out = self.model(x)
            loss = self.{name}[0](out, target)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            shown += self.{name}[{index}](told, target).item()
        return shown
"""


@pytest.mark.parametrize(("name", "index"), [("criterions", "0"), ("criteria", "1"), ("losses", "'teacher'")])
def test_no_evaluation(tmp_path: Path, name: str, index: str) -> None:
    (tmp_path / "trainer.py").write_text(TRAINER.format(name=name, index=index))
    assert not memlint.lint([tmp_path], isolated=True).findings


EVALUATE = """
import torch


class Tester:
    def __init__(self, {name}):
        self.{name} = {name}

    def evaluate(self, loader):
        right = 0
        for one in self.{name}:
            one.eval()
        for x, target in loader:
            right += (self.{name}[0](x.cuda()).argmax(1) == target.cuda()).sum().item()
        return right
"""


@pytest.mark.parametrize("name", ["models", "students"])
def test_a_list_of_models_holds_models(tmp_path: Path, name: str) -> None:
    (tmp_path / "tester.py").write_text(EVALUATE.format(name=name))
    found = memlint.lint([tmp_path], isolated=True, min_confidence="low").findings
    assert [item.code for item in found] == ["MEM201"]


SUMS = """
import torch


def train(model, loader, optimizer, {name}, weight):
    model.cuda().train()
    shown = 0.0
    for x, target in loader:
        out = model(x.cuda())
        first = {name}[{index}](out, target.cuda())
        second = (out - target.cuda()).abs().mean()
        loss = weight.mix(first, second)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        shown += {added}
    return float(shown)
"""


@pytest.mark.parametrize(
    ("name", "index", "added", "found"),
    [
        ("criteria", "0", "first", True),
        ("criterions", "0", "first", True),
        ("losses", "'l1'", "first", True),
        ("loss_fns", "0", "first", True),
        ("losses", "'l1'", "first.item()", False),
        # what it calls need be no loss
        ("lookups", "0", "first", False),
    ],
)
def test_what_a_loss_of_several_gives_has_the_graph_of_what_it_compares(
    tmp_path: Path, name: str, index: str, added: str, found: bool
) -> None:
    (tmp_path / "trainer.py").write_text(SUMS.format(name=name, index=index, added=added))
    codes = [one.code for one in memlint.lint([tmp_path], isolated=True).findings]
    assert codes == (["MEM101"] if found else [])


PARTS = """
import torch


def train(model, loader, criterion, optimizer):
    kept = []
    for x, y in loader:
        told = criterion(model(x.cuda()), y.cuda())
        loss = told[0] if isinstance(told, tuple) else told
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        kept.append({kept})
    return kept


net = torch.nn.Linear(8, 8).cuda()
train(net, torch.utils.data.DataLoader(range(9)), losses.pick(), torch.optim.SGD(net.parameters(), 0.1))
"""


@pytest.mark.parametrize(
    ("kept", "found"),
    [("loss", True), ("told[0]", True), ("told", True), ("told[1]", False), ("told[1].item()", False)],
)
def test_what_stands_beside_a_loss_need_be_no_tensor(tmp_path: Path, kept: str, found: bool) -> None:
    (tmp_path / "trainer.py").write_text(PARTS.format(kept=kept))
    codes = [one.code for one in memlint.lint([tmp_path], isolated=True).findings]
    assert codes == (["MEM102"] if found else [])
