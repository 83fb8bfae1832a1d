"""A test that is asked twice: what one side of the first ``if`` left holds in the same side of the second."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint

CARRY = """
import torch
from torch import nn


class Center(nn.Module):
    def __init__(self, width, tracks=True):
        super().__init__()
        self.tracks = tracks
        self.register_buffer("center", torch.zeros(width))

    def forward(self, x, wanted=True):
        if {first}:
            self.center = self.center.detach()
        {between}
        if {second}:
            self.center = 0.9 * self.center + 0.1 * x.mean(0)
        return x - self.center
"""


def codes(tmp_path: Path, code: str) -> list[str]:
    (tmp_path / "program.py").write_text(code)
    result = memlint.lint([tmp_path])
    assert not result.failures
    return [found.code for found in result.findings]


@pytest.mark.parametrize(
    ("first", "between", "second", "expected"),
    [
        pytest.param("self.training", "pass", "self.training", [], id="the same test"),
        pytest.param("1", "pass", "1", [], id="a test that is always passed"),
        pytest.param("self.training", "pass", "self.training and self.tracks", [], id="a stronger test"),
        pytest.param("not wanted", "x = x if wanted else 2 * x", "not wanted", [], id="a negation"),
        pytest.param("self.training and self.tracks", "pass", "self.training", ["MEM103"], id="a weaker test"),
        pytest.param("self.training", "pass", "wanted", ["MEM103"], id="another test"),
        pytest.param("self.tracks", "pass", "not self.tracks", ["MEM103"], id="the other side"),
        pytest.param("self.training", "self.train()", "self.training", ["MEM103"], id="another mode in between"),
        pytest.param("self.tracks", "self.tracks = True", "self.tracks", ["MEM103"], id="another attribute"),
    ],
)
def test_a_detach_under_the_same_test(
    tmp_path: Path, first: str, between: str, second: str, expected: list[str]
) -> None:
    assert codes(tmp_path, CARRY.format(first=first, between=between, second=second)) == expected


LOOP = """
import torch


def run(cell: torch.nn.Module, loader, optimizer, resets):
    state = torch.zeros(8)
    for x, y, {item} in loader:
        if resets:
            state = state.detach()
        loss = cell(x, state)
        if resets:
            state = cell.step(x, state)
        optimizer.zero_grad()
        loss.sum().backward(retain_graph=True)
        optimizer.step()
"""


@pytest.mark.parametrize(("item", "expected"), [("_", []), ("resets", [])])
def test_each_round_asks_for_itself(tmp_path: Path, item: str, expected: list[str]) -> None:
    found = codes(tmp_path, LOOP.format(item=item))
    assert [code for code in found if code == "MEM103"] == expected


LOSSES = """
import torch


def losses_of(anchors, positives, with_backward=False):
    losses = []
    for start in range(0, len(anchors), 8):
        loss = (anchors[start : start + 8] @ positives.T).exp().sum()
        if with_backward:
            loss.backward()
            {detach}
        losses.append(loss)
    return {result}


def step(model: torch.nn.Module, batch, optimizer):
    anchors, positives = model(batch["a"]), model(batch["b"])
    loss = losses_of(anchors, positives)
    {use}
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("detach", "result", "use", "expected"),
    [
        pytest.param("loss = loss.detach()", "sum(losses)", "loss.backward()", [], id="the caller's backward"),
        pytest.param("pass", "sum(losses)", "print(float(loss))", ["MEM102"], id="kept though it was freed"),
        pytest.param("loss = loss.detach()", "len(losses)", "print(loss)", ["MEM102"], id="kept and never used"),
    ],
)
def test_what_is_let_go_of_where_it_is_freed(
    tmp_path: Path, detach: str, result: str, use: str, expected: list[str]
) -> None:
    assert codes(tmp_path, LOSSES.format(detach=detach, result=result, use=use)) == expected


RECORDED = """
import torch


def run(model, loader, optimizer, stats, phase):
    for x, y in loader:
        with torch.set_grad_enabled({switch}):
            loss = (model(x.cuda()) - y.cuda()).square().mean()
            {inside}
        {after}
        stats.append(loss)


def main(model, loader, optimizer):
    stats = []
    for phase in ("train", "test"):
        run(model, loader, optimizer, stats, phase)
"""


@pytest.mark.parametrize(
    ("switch", "inside", "after", "memory"),
    [
        ('phase == "train"', 'if phase == "train": loss.backward()', "pass", "host"),
        ('phase == "train"', "pass", 'if phase == "train": loss.backward()', "host"),
        ('phase == "train"', "pass", 'if not phase == "train": pass\n        else: loss.backward()', "host"),
        ('phase == "train"', "pass", 'if phase == "tune": loss.backward()', "device-graph"),
        ("True", 'if phase == "train": loss.backward()', "pass", "device-graph"),
    ],
)
def test_a_flag_that_records_and_runs_backward(
    tmp_path: Path, switch: str, inside: str, after: str, memory: str
) -> None:
    (tmp_path / "train.py").write_text(RECORDED.format(switch=switch, inside=inside, after=after))
    said = [one for one in memlint.lint([tmp_path], isolated=True).findings if one.code == "MEM102"]
    assert [one.growth.memory for one in said] == [memory]


OWN_GUARD = """
import contextlib
import torch


@contextlib.contextmanager
def recording(on):
    if on:
        with torch.enable_grad():
            yield
    else:
        with torch.no_grad():
            yield


def validate(model, loader, criterion, collect=False):
    losses = []
    model.eval()
    with recording(collect):
        for batch, labels in loader:
            loss = criterion(model(batch.cuda()), labels.cuda())
            losses.append(loss)
            if {test}:
                loss.backward()
    return torch.stack(losses).mean()
"""


@pytest.mark.parametrize(("test", "memory"), [("collect", "host"), ("len(losses) > 3", "device-graph")])
def test_a_guard_of_the_project_with_a_switch(tmp_path: Path, test: str, memory: str) -> None:
    """What records only where the switch is on is freed by the backward that the switch also asks for."""
    (tmp_path / "validate.py").write_text(OWN_GUARD.format(test=test), encoding="utf-8")
    found = memlint.lint([tmp_path], isolated=True).findings
    assert {one.growth.memory for one in found if one.code == "MEM102"} == {memory}


ONE_OR_TWO = """
import importlib
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, name):
        super().__init__()
        self.body = importlib.import_module(name).Body()
        self.head = importlib.import_module(name).Head()

    def forward(self, data, label=None):
        out = self.body.forward(data)
        if label == None:
            return out
        loss, hits = self.head.forward(out, label)
        return loss, {hits}


class Trainer:
    def __init__(self, net: Net, optimizer):
        self.net, self.optimizer = net, optimizer

    def train(self, loader):
        hits = 0
        for data, label in loader:
            loss, more = self.net(data.cuda(), label.cuda())
            hits += more
            loss.backward()
            self.optimizer.step()
            self.optimizer.zero_grad()
        return hits
"""


@pytest.mark.parametrize(("hits", "codes"), [("hits", set()), ("loss", {"MEM101"})])
def test_what_is_unpacked_is_the_tuple(tmp_path: Path, hits: str, codes: set[str]) -> None:
    """The single tensor of another path is not what is unpacked: of the second part, that says nothing."""
    (tmp_path / "train.py").write_text(ONE_OR_TWO.format(hits=hits), encoding="utf-8")
    assert {one.code for one in memlint.lint([tmp_path], isolated=True).findings} == codes


PLACEHOLDERS = """
import torch


def step(model, x, cached):
    if cached:
        return 0.0, None
    return model(x)


def train(model: torch.nn.Module, loader, optimizer, cached=False):
    total = 0
    for x in loader:
        loss, state = step(model, x.cuda(), cached)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss
    return total
"""


def test_placeholders_of_another_path(tmp_path: Path) -> None:
    """A number and None are what another path gives instead: the model's output is unpacked all the same."""
    (tmp_path / "train.py").write_text(PLACEHOLDERS, encoding="utf-8")
    assert {one.code for one in memlint.lint([tmp_path], isolated=True).findings} == {"MEM101"}
