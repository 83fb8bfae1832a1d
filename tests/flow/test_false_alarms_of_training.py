"""Training code that is right, beside the same code with the mistake: only the second is told."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint


def said(folder: Path, **files: str) -> set[tuple[str, str]]:
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    found = memlint.lint([folder], isolated=True).findings
    return {(one.code, one.severity) for one in found if one.severity != "note"}


COUNTS = """
import torch


def train(task, model, loader, optimizer):
    seen = 0
    for batch in loader:
        loss, size = task(model, batch), task.{method}(batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seen += size * 2
    return float(seen)
"""


def test_a_method_that_counts_gives_a_number(tmp_path: Path) -> None:
    assert said(tmp_path, train=COUNTS.format(method="batch_size")) == set()


NORMS = """
import torch


class Meter:
    def __init__(self):
        self.avg = 0

    def update(self, value):
        self.avg = 0.9 * self.avg + 0.1 * value


def train(model, loader, optimizer):
    meter = Meter()
    for x, y in loader:
        loss = (model(x.cuda()) - y.cuda()).square().mean()
        optimizer.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        meter.update({value})
"""


@pytest.mark.parametrize(("value", "codes"), [("norm", set()), ("loss", {"MEM103"})])
def test_the_norm_of_gradients_has_no_graph(tmp_path: Path, value: str, codes: set[str]) -> None:
    assert {code for code, _ in said(tmp_path, train=NORMS.format(value=value))} == codes


VIEWS = """
import torch


class Views:
    def outputs(self, model, loader):
        model.{mode}()
        kept = []
        for view in loader:
            kept.append(model(view.to("cuda")))
        {after}
        return len(kept)

    def loss(self):
        return self.all.square().mean()
"""


@pytest.mark.parametrize(
    ("mode", "after", "codes"),
    [
        ("train", "self.all = torch.stack(kept)[:2]", set()),
        ("train", "self.all = kept", set()),
        ("eval", "self.count = len(kept)", {"MEM102"}),
    ],
)
def test_parts_that_become_an_attribute_through_a_stack(tmp_path: Path, mode: str, after: str, codes: set[str]) -> None:
    found = said(tmp_path, views=VIEWS.format(mode=mode, after=after))
    assert {code for code, _ in found} & {"MEM102"} == codes


BANK = """
import torch


def nearest(features, rows):
    return (features @ rows).argmax(1)


def described(features, rows):
    print(rows.shape)
    return features.argmax(1)


def probe(model, loader, queries):
    model.cuda().eval()
    bank = []
    with torch.no_grad():
        for x, _ in loader:
            bank.append(model(x.cuda()))
        rows = torch.cat(bank).t()
        hits = 0
        for x, y in queries:
            hits += {use}
    return hits
"""


@pytest.mark.parametrize(
    ("use", "codes"),
    [
        ("(model(x.cuda()) @ rows).argmax(1).eq(y.cuda()).sum().item()", set()),
        ("torch.mm(model(x.cuda()), rows).argmax(1).eq(y.cuda()).sum().item()", set()),
        ("nearest(model(x.cuda()), rows).eq(y.cuda()).sum().item()", set()),
        ("nearest(model(x.cuda()), rows=rows).eq(y.cuda()).sum().item()", set()),
        ("described(model(x.cuda()), rows).eq(y.cuda()).sum().item()", {"MEM104"}),
        ("rows.size(1) + model(x.cuda()).argmax(1).eq(y.cuda()).sum().item()", {"MEM104"}),
    ],
)
def test_a_bank_that_everything_is_compared_with(tmp_path: Path, use: str, codes: set[str]) -> None:
    assert {code for code, _ in said(tmp_path, probe=BANK.format(use=use))} == codes


CACHE = """
import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.project = nn.Linear(64, 64)
        self.keys = None

    def clear(self):
        self.keys = None

    def forward(self, x):
        key = self.project(x)
        if self.keys is not None:
            self.keys = torch.cat([self.keys, key], dim=1)
            key = self.keys
        return key.mean(1)


def decode(model: Attention, loader):
    for x in loader:
        {reset}
        for step in range(20):
            print(model(x).argmax(-1).tolist())
"""


@pytest.mark.parametrize("reset", ["model.clear()"])
def test_a_cache_that_is_begun_anew_for_each_sequence(tmp_path: Path, reset: str) -> None:
    assert ("MEM302", "error") not in said(tmp_path, decode=CACHE.format(reset=reset))


OF_UNKNOWN = """
import torch
import torch.nn.functional as F


def distance(scores, targets):
    return F.l1_loss(scores, targets)


def train(model, loader, optimizer):
    total = 0
    for graphs, targets in loader:
        scores = model.forward(graphs)
        loss = model.loss(scores, targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += distance(scores, targets)
    return float(total)
"""
NETS = "\n".join(
    f"""
class Net{number}:
    def loss(self, scores, targets):
        return ((scores - targets) ** {number}).mean()
"""
    for number in range(12)
)


def test_a_measure_of_what_a_backward_has_freed(tmp_path: Path) -> None:
    """More classes have a method ``loss`` than are looked at, so that the model's kind is not known."""
    assert said(tmp_path, train=OF_UNKNOWN, nets="import torch\n" + NETS) == {("MEM101", "warning")}


LEARNER = """
import torch
from torch import nn


class Cell(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(64, 64)

    def forward(self, x, state):
        new = self.layer(x + (0 if state is None else state[0]))
        return new, [new]


def learn(cell: Cell, batches_loader):
    states = [None]
    for x in batches_loader:
        weights, state = cell(x.cuda(), states[-1])
        states.append(state)
    return weights


def main(cell: Cell, tasks, optimizer, other):
    for batches_loader, x in tasks:
        weights = learn(cell, batches_loader)
        {use}
"""


@pytest.mark.parametrize(
    ("use", "codes"), [("(other(x) * weights).sum().backward()", set()), ("print(weights.argmax())", {"MEM102"})]
)
def test_states_of_what_is_returned_and_differentiated(tmp_path: Path, use: str, codes: set[str]) -> None:
    found = said(tmp_path, learn=LEARNER.format(use=use))
    assert {code for code, _ in found} & {"MEM102"} == codes


FROZEN = """
import torch
from torch import nn


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(64, 64)

    def freeze(self):
        for parameter in self.parameters():
            parameter.requires_grad = False

    def sample(self, x):
        hidden = torch.zeros(8, 64).cuda()
        for _ in range(500):
            hidden = self.cell(x, hidden)
            x = hidden.argmax(1, keepdim=True).float().expand(8, 64)
        return x


def train(judge, loader):
    generator = Generator().cuda()
    {freeze}
    for x in loader:
        print(judge(generator.sample(x.cuda())).mean().item())
"""


@pytest.mark.parametrize(("freeze", "found"), [("generator.freeze()", False), ("generator.train()", True)])
def test_a_model_that_its_callers_freeze_records_nothing(tmp_path: Path, freeze: str, found: bool) -> None:
    assert ("MEM103" in {code for code, _ in said(tmp_path, train=FROZEN.format(freeze=freeze))}) is found


METERS = """
import torch


class Mean:
    def __init__(self):
        self.values = []

    {method}
        self.values.append(value.detach().cpu())
        return self


class Tracker:
    def __init__(self):
        self.tracks = {{}}

    def add(self, name):
        self.tracks[name] = Mean()

    def update(self, losses):
        for name, loss in losses.items():
            if name not in self.tracks:
                self.add(name)
            self.tracks[name] += loss
"""
TRAIN = """
import torch
from meters import Tracker


def train(model, loader, optimizer):
    tracker = Tracker()
    for x, y in loader:
        loss = (model(x.cuda()) - y.cuda()).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        tracker.update(dict(loss=loss))
"""


def test_a_meter_whose_class_says_what_adding_does(tmp_path: Path) -> None:
    assert said(tmp_path, meters=METERS.format(method="def __iadd__(self, value):"), train=TRAIN) == set()


OLD = """
import torch
from torch.autograd import Variable


def measure(model, rows, criterion):
    total = 0.0
    for x, y in rows:
        loss = criterion(model(Variable(x, volatile=True)), Variable(y, volatile=True))
        total += {number}
    return total
"""


@pytest.mark.parametrize(
    ("number", "codes"),
    [("loss.data.cpu().numpy()[0]", set()), ("loss.data[0]", {"MEM203"}), ("loss.item()", {"MEM203"})],
)
def test_code_that_runs_only_where_volatile_works(tmp_path: Path, number: str, codes: set[str]) -> None:
    assert {code for code, _ in said(tmp_path, measure=OLD.format(number=number))} == codes
