"""What is let go of again: by a reset that comes now and then, and by a method that cuts the graph in place."""

from __future__ import annotations

from pathlib import Path

import pytest
from linting import codes_in

import memlint

WINDOW = """
import torch


def train(model, loader, optimizer, criterion):
    shown = []
    every = 200
    for step, (x, y) in enumerate(loader):
        loss = criterion(model(x.cuda()), y.cuda())
        optimizer.zero_grad()
        {backward}
        optimizer.step()
        shown.append(loss)
        if step % every == 0:
            print(step, sum(shown).item() / len(shown))
            {reset}
"""


@pytest.mark.parametrize(
    ("backward", "reset", "severity"),
    [
        ("loss.backward()", "shown = []", "note"),
        ("loss.backward()", "shown.clear()", "note"),
        ("loss.backward()", "pass", "warning"),
    ],
)
def test_nodes_of_freed_graphs_until_a_reset(tmp_path: Path, backward: str, reset: str, severity: str) -> None:
    (tmp_path / "train.py").write_text(WINDOW.format(backward=backward, reset=reset))
    (finding,) = memlint.lint([tmp_path]).findings
    assert (finding.code, finding.severity) == ("MEM102", severity)


RUNNING = """
import torch
from torch.nn import functional as F


class Client:
    def __init__(self, model, optimizer):
        self.model = model
        self.optimizer = optimizer
        self.mean = torch.zeros(8)

    def train(self, loader):
        for x, y in loader:
            features = self.model.body(x)
            self.mean = 0.9 * self.mean + 0.1 * features.mean(0)
            loss = F.cross_entropy(self.model.head(features), y) + self.mean.square().sum()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.finish()

    def finish(self):
        {statement}
"""


@pytest.mark.parametrize(
    ("statement", "codes"),
    [
        ("self.mean.detach_()", []),
        ("self.mean = self.mean.detach()", []),
        ("self.mean.detach()", ["MEM103"]),
        ("print(self.mean)", ["MEM103"]),
    ],
)
def test_a_method_that_cuts_in_place(tmp_path: Path, statement: str, codes: list[str]) -> None:
    (tmp_path / "train.py").write_text(RUNNING.format(statement=statement))
    assert [item.code for item in memlint.lint([tmp_path]).findings] == codes


STEPPED = """
import torch


def train(module: torch.nn.Module, loader, optimizer):
    module.train()
    outputs = []
    for batch in loader:
        output = module.step_on(batch)
        optimizer.zero_grad()
        output["loss"].backward()
        optimizer.step()
        {statement}
        outputs.append(output)
    return [output["loss"].item() for output in outputs]
"""


@pytest.mark.parametrize(
    ("statement", "codes"),
    [
        ('output["loss"] = output["loss"].detach()', []),
        ('output["seconds"] = 3', ["MEM102"]),
        ("pass", ["MEM102"]),
    ],
)
def test_other_members_of_a_step_whose_loss_is_cut(tmp_path: Path, statement: str, codes: list[str]) -> None:
    (tmp_path / "train.py").write_text(STEPPED.format(statement=statement))
    assert [item.code for item in memlint.lint([tmp_path]).findings] == codes


LOGGED = """
import torch


def train(model, loader, optimizer, criterion, interval):
    total = 0
    for step, (x, y) in enumerate(loader):
        loss = criterion(model(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss
        {test}:
            print(total / interval)
            {reset}
    return total
"""


@pytest.mark.parametrize(
    ("test", "reset", "severity"),
    [
        ("if step % interval == 0", "total = 0", "note"),
        ("if step % interval == 0", "total = total.item()", "note"),
        ("if step % interval == 0", "pass", "warning"),
        ("if y.sum() > 0", "total = 0", "warning"),  # how often that is, nothing tells
        ("if '%d' % step == '0'", "total = 0", "warning"),
    ],
)
def test_a_sum_that_is_shown_and_begun_anew(tmp_path: Path, test: str, reset: str, severity: str) -> None:
    (tmp_path / "train.py").write_text(LOGGED.format(test=test, reset=reset), encoding="utf-8")
    (found,) = memlint.lint([tmp_path], isolated=True).findings
    assert (found.code, found.severity) == ("MEM101", severity)


MEMBERS = """
import torch
from torch import nn


class Trainer:
    def __init__(self):
        self.net = nn.Linear(3, 1).cuda()
        self.logging = {{"loss": 0, "other": 0}}

    def learn(self, loader, optimizer, every):
        stats = {{"loss": 0, "other": 0}}
        for epoch in range(9):
            {begin}
            for step, x in enumerate(loader):
                loss = self.net(x.cuda()).mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                {place}["loss"] += loss
                if step % every == 0:
                    {reset}

    def log(self):
        print(self.logging["loss"])
        self.logging["loss"] = 0

    def log_other(self):
        print(self.logging["other"])
        self.logging["other"] = 0


trainer = Trainer()
optimizer = torch.optim.SGD(trainer.net.parameters(), 0.1)
trainer.learn(torch.utils.data.DataLoader(range(9)), optimizer, 3)
"""


@pytest.mark.parametrize(
    ("place", "begin", "reset", "severity"),
    [
        ("stats", "pass", "stats['loss'] = 0", "note"),
        ("stats", "pass", "stats['other'] = 0", "warning"),
        ("stats", "stats['loss'] = 0", "pass", "warning"),
        ("self.logging", "pass", "self.log()", "note"),
        ("self.logging", "pass", "self.log_other()", "warning"),
        ("self.logging", "pass", "self.logging['loss'] = 0", "note"),
    ],
)
def test_a_member_that_begins_anew_now_and_then(
    tmp_path: Path, place: str, begin: str, reset: str, severity: str
) -> None:
    (tmp_path / "train.py").write_text(MEMBERS.format(place=place, begin=begin, reset=reset))
    (finding,) = memlint.lint([tmp_path]).findings
    assert (finding.code, finding.severity) == ("MEM101", severity)


SWITCHED = """
import torch
from torch.nn import functional as F


def train(net, loader, optimizer, args):
    total = 0
    for step, (x, y) in enumerate(loader):
        loss = F.mse_loss(net(x.cuda()), y.cuda())
        if args.proxy:
            for weight in args.weights:
                total += weight
            if args.more:
                total = total + 0.1 * loss
            optimizer.zero_grad()
            {backward}
            optimizer.step()
"""


@pytest.mark.parametrize(
    ("backward", "codes"),
    [
        # a second round that had the sum of the first in it would raise
        ("total.backward()", []),
        ("args.scaler.scale(total).backward()", []),
        ("total.backward(retain_graph=True)", ["MEM101"]),
        ("loss.backward()", ["MEM101"]),
    ],
)
def test_a_sum_that_its_own_round_trains_by(tmp_path: Path, backward: str, codes: list[str]) -> None:
    (tmp_path / "train.py").write_text(SWITCHED.format(backward=backward))
    found = [each.code for each in memlint.lint([tmp_path]).findings]
    assert [code for code in found if code == "MEM101"] == codes


OWN_RESET = """
import pytorch_lightning as pl
import torch.nn.functional as F
from torch import nn


class Meter:
    def __init__(self):
        self.reset()

    def reset(self):
        self.sum, self.count = 0, 0

    def update(self, value, n=1):
        self.sum += value * n
        self.count += n


class Lit(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(3, 3)
        self.meter = Meter()

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = F.cross_entropy(self.net(x), y)
        self.meter.update(loss)
        return loss

    def on_train_epoch_start(self):
        {begin}
"""


@pytest.mark.parametrize(("begin", "found"), [("pass", True), ("self.meter.reset()", False)])
def test_a_meter_that_its_constructor_alone_resets(tmp_path: Path, begin: str, found: bool) -> None:
    assert ("MEM101" in codes_in(tmp_path, OWN_RESET.format(begin=begin))) is found
