"""Losses that come in parts, as a dictionary or inside a record: what keeps the parts after the backward of their sum,
keeps the graph of each batch."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.linting import severities_in

DICTIONARY = """
import collections
import torch


class Trainer:
    def __init__(self, model, optimizer, losses):
        self.model, self.optimizer, self.losses = model, optimizer, losses
        self.history = []
        self.by_name = {{}}
        self.lists = collections.defaultdict(list)

    def fit(self, loader):
        for x, y in loader:
            parts = self.losses(self.model(x.cuda()), y.cuda())
            loss = {total}
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            {keep}
"""


@pytest.mark.parametrize("total", ["sum(parts.values())", "sum(part for part in parts.values())"])
@pytest.mark.parametrize(
    ("keep", "expected"),
    [
        ("self.history.append(parts)", ["warning"]),
        ("for k, v in parts.items():\n                self.lists[k].append(v)", ["warning"]),
        ("for k, v in parts.items():\n                self.by_name.setdefault(k, []).append(v)", ["warning"]),
        ("for v in parts.values():\n                self.history.append(v)", ["warning"]),
        ("self.history.append({k: v.item() for k, v in parts.items()})", []),
        ("for k, v in parts.items():\n                self.lists[k].append(v.detach())", []),
        ("for k, v in parts.items():\n                self.by_name.setdefault(k, []).append(float(v))", []),
        ("self.history = [parts]", []),
        ("self.history.append(list(parts.keys()))", []),
    ],
)
def test_parts_of_a_sum_that_is_differentiated(tmp_path: Path, total: str, keep: str, expected: list[str]) -> None:
    assert severities_in(tmp_path, DICTIONARY.format(total=total, keep=keep), "MEM102") == expected


OF_LOSSES = "sum(v for k, v in parts.items() if k.startswith('loss'))"
PICKED = "for k, v in parts.items():\n                if {test}:\n                    self.history.append(v)"


@pytest.mark.parametrize(
    ("total", "keep", "expected"),
    [
        (OF_LOSSES, PICKED.format(test="not k.startswith('loss')"), []),
        (OF_LOSSES, PICKED.format(test="k == 'acc'"), []),
        (OF_LOSSES, "for v in parts.values():\n                self.history.append(v)", []),
        (OF_LOSSES, "self.history.append([v for k, v in parts.items() if 'acc' in k])", []),
        (OF_LOSSES, PICKED.format(test="k.startswith('loss')"), ["warning"]),
        (OF_LOSSES, "self.history.append(parts)", ["warning"]),
        ("sum(parts.values())", PICKED.format(test="k.startswith('acc')"), []),
        ("sum(parts.values())", PICKED.format(test="torch.is_tensor(v)"), ["warning"]),
        ("sum(v for v in parts.values() if v.requires_grad)", PICKED.format(test="'acc' in k"), []),
        (
            OF_LOSSES,
            "for k, v in parts.items():\n                if k.startswith('loss'):\n                    continue\n"
            "                self.history.append(v)",
            [],
        ),
    ],
)
def test_parts_that_a_test_picks(tmp_path: Path, total: str, keep: str, expected: list[str]) -> None:
    """What a sum of some members proves of them, it does not prove of the others."""
    assert severities_in(tmp_path, DICTIONARY.format(total=total, keep=keep), "MEM102") == expected


RECORD = """
import torch


class History:
    def __init__(self):
        self.rows = []

    def add(self, step, loss):
        self.rows.append({row})


def train(model, loader, optimizer, criterion):
    history = History()
    for step, (x, y) in enumerate(loader):
        loss = criterion(model(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.add(step, {given})
    return history
"""


@pytest.mark.parametrize("row", ["(step, loss)", '{"step": step, "loss": loss}', "[step, loss]"])
@pytest.mark.parametrize(("given", "expected"), [("loss", ["warning"]), ("loss.item()", []), ("loss.detach()", [])])
def test_record_that_surely_holds_a_loss(tmp_path: Path, row: str, given: str, expected: list[str]) -> None:
    assert severities_in(tmp_path, RECORD.format(row=row, given=given), "MEM102") == expected


AVERAGE = """
import torch


def train(model, loader, optimizer, criterion):
    average = {start}
    for x, y in loader:
        loss = criterion(model(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        average = {update}
"""


@pytest.mark.parametrize(
    ("start", "update", "expected"),
    [
        ("0.0", "0.9 * average + 0.1 * loss", ["warning"]),
        ("0.0", "loss * 0.1 + average * 0.9", ["warning"]),
        ("None", "loss if average is None else 0.9 * average + 0.1 * loss", ["warning"]),
        ("0.0", "0.9 * average + 0.1 * loss.item()", []),
        ("None", "loss.detach() if average is None else 0.9 * average + 0.1 * loss.detach()", []),
    ],
)
def test_average_of_losses(tmp_path: Path, start: str, update: str, expected: list[str]) -> None:
    assert severities_in(tmp_path, AVERAGE.format(start=start, update=update), "MEM103") == expected


OF_MODEL = """
import torch
import torchvision


def train(loader, criterion):
    model = torchvision.models.detection.retinanet_resnet50_fpn().cuda()
    model.train()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    total, sums = 0, {{}}
    for images, targets in loader:
        {parts}
        loss = {total}
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        {keep}
    print(total, sums)
"""
_SUMMED = 'total += parts["box"]'
_OUTPUT = "parts = model(images, targets)"


@pytest.mark.parametrize(
    ("parts", "total", "keep", "expected"),
    [
        (_OUTPUT, "sum(parts.values())", _SUMMED, ["warning"]),
        (_OUTPUT, "sum(one for one in parts.values())", _SUMMED, ["warning"]),
        (_OUTPUT, "sum([one for one in parts.values()])", _SUMMED, ["warning"]),
        (_OUTPUT, "sum(parts.values())", "for k, v in parts.items(): sums[k] = sums.get(k, 0) + v", ["warning"]),
        # beside another term
        ("out, rest = model(images); parts = criterion(rest)", "out + sum(parts.values())", _SUMMED, ["warning"]),
        (_OUTPUT, "sum(parts.values())", 'total += parts["box"].item()', []),
        # one that a test leaves out, and one of an output of which another one is differentiated, may be a number
        (_OUTPUT, 'sum(v for k, v in parts.items() if k != "box")', _SUMMED, []),
        (_OUTPUT, 'sum(v for v in parts.values() if "loss" in v)', _SUMMED, []),
        (_OUTPUT, 'parts["cls"]', _SUMMED, []),
        (_OUTPUT, "sum(parts[k] for k in criterion.names)", _SUMMED, []),
        # what is taken out or put in is not what was summed
        ("parts = model(images, targets); hits = parts.pop('hits')", "sum(parts.values())", "total += hits", []),
        ("parts = model(images, targets); hits = parts['hits']", "parts['a']", "total += hits", []),
        (_OUTPUT + "; total += parts['hits']; del parts['hits']", "sum(parts.values())", "pass", []),
        (_OUTPUT, "sum(parts.values()); parts['box'] = len(images)", _SUMMED, []),
        (_OUTPUT, "sum(parts.values()); parts = criterion(images)", _SUMMED, []),
        # the other part of a pair, a divisor, a factor and an argument need no graph
        ("sum_of, parts = model(images)", "sum(sum_of.values())", _SUMMED, []),
        ("out, parts = model(images)", "out.mean() / sum(parts.values())", _SUMMED, []),
        ("out, parts = model(images)", "out.mean() * sum(parts.values())", _SUMMED, []),
        ("out, parts = model(images)", "criterion(out, sum(parts.values()))", _SUMMED, []),
        (_OUTPUT, 'parts["loss"] if "loss" in parts else sum(parts.values())', _SUMMED, []),
        (_OUTPUT, "sum(parts.values()) / len(parts)", _SUMMED, ["warning"]),
        (_OUTPUT, "0.5 * sum(parts.values())", _SUMMED, ["warning"]),
    ],
)
def test_parts_of_an_output_that_are_summed_whole(
    tmp_path: Path, parts: str, total: str, keep: str, expected: list[str]
) -> None:
    text = OF_MODEL.format(parts=parts, total=total, keep=keep)
    assert severities_in(tmp_path, text, "MEM101") == expected
