"""What one round leaves to the next: nothing where the round begins it anew, whatever keeps it in between."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint


def codes(folder: Path, text: str) -> set[str]:
    (folder / "train.py").write_text(text, encoding="utf-8")
    return {one.code for one in memlint.lint([folder], isolated=True).findings}


BRANCHES = """
import torch


def train(model, criterion, loader, optimizer, kind):
    {start}
    for step, (x, y) in enumerate(loader):
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if {test}:
            shown = loss
        elif isinstance(kind, str):
            shown = loss.abs()
        shown = 0.9 * shown + 0.1 * loss
    return float(shown)
"""


@pytest.mark.parametrize(
    ("start", "test", "told"),
    [
        ("pass", "kind == 'first'", set()),  # the same branch in each round, and the first must have taken one
        ("pass", "any(one in kind for one in ('first', 'second'))", set()),
        ("shown = 0", "kind == 'first'", {"MEM103"}),  # a kind that no branch knows goes on from the last round
        ("pass", "step == 0", {"MEM103"}),
    ],
)
def test_a_variable_without_a_value_before_the_loop(tmp_path: Path, start: str, test: str, told: set[str]) -> None:
    assert codes(tmp_path, BRANCHES.format(start=start, test=test)) == told


LATENT = """
import torch
from torch import nn


class Latent(nn.Module):
    def __init__(self, mask, start):
        super().__init__()
        self.mask = mask
        self.start = start
        self.scale = nn.Parameter(torch.zeros(8, 8))
        self.z = torch.zeros(8, 8)

    def forward(self, model):
        made = self.scale * model(self.start)
        self.{place} = self.mask * self.{place} + made
        return made


def search(model, optimizer, start):
    latent = Latent(torch.ones(8, 8), start)
    kept = []
    for step in range(1000):
        optimizer.zero_grad()
        latent(model).square().mean().backward()
        optimizer.step()
        kept.append(latent.{place} * 2)
    return kept
"""


@pytest.mark.parametrize(("place", "told"), [("z.data", False), ("z", True)])
def test_autograd_never_hears_of_data(tmp_path: Path, place: str, told: bool) -> None:
    assert bool(codes(tmp_path, LATENT.format(place=place))) == told


COMPARED = """
import torch


class Features:
    def __init__(self, net):
        self.net = net.eval()
        self.kept = []

    def distance(self, fake, loader):
        {before}
        total = 0.0
        for x in loader:
            {within}
            real = self.net(x)
            self.kept.append(real)
            total += (real - fake).abs().mean().item()
        return total
"""


@pytest.mark.parametrize(
    ("before", "within", "told"),
    [
        ("pass", "self.kept.clear()", False),
        ("pass", "self.kept = []", False),
        ("self.kept.clear()", "pass", True),
    ],
)
def test_a_round_that_begins_with_clearing(tmp_path: Path, before: str, within: str, told: bool) -> None:
    assert ("MEM102" in codes(tmp_path, COMPARED.format(before=before, within=within))) == told


SLOTS = """
import torch
from torch import nn


class Graph(nn.Module):
    def __init__(self, parts):
        super().__init__()
        self.parts = parts
        self.seen = {made}
        self.weight = nn.Parameter(torch.zeros(parts, 8, 8))

    def forward(self, x):
        total = 0
        for part in range(self.parts):
            links = torch.softmax(x @ self.weight[part], -1)
            {kept}
            total = total + links
        return total


def train(loader, optimizer):
    model = Graph(3)
    for x, y in loader:
        optimizer.zero_grad()
        (model(x) - y).abs().mean().backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("made", "kept", "told"),
    [
        ("[None] * parts", "self.seen[part] = links", False),
        ("[]", "self.seen.append(links)", True),
    ],
)
def test_each_call_overwrites_its_slots(tmp_path: Path, made: str, kept: str, told: bool) -> None:
    assert ("MEM102" in codes(tmp_path, SLOTS.format(made=made, kept=kept))) == told


STATE = """
import torch
from torch import nn


class Leaky(nn.Module):
    def __init__(self):
        super().__init__()
        self.lift = nn.Linear(8, 8)
        {made}

    def forward(self, x):
        lifted = self.lift(x)
        self.state = 0.9 * self.state + lifted.mean(0)
        return torch.sigmoid({output})


def train(loader, optimizer):
    model = Leaky()
    for x, y in loader:
        optimizer.zero_grad()
        (model(x) - y).square().mean().backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("made", "output", "told"),
    [
        ("self.state = 0.0", "lifted - self.state", False),
        ("self.state = 0.0", "lifted", True),
        ('self.register_buffer("state", torch.zeros(8))', "lifted - self.state", True),
    ],
)
def test_a_state_that_makes_the_output_would_raise_if_nobody_cut_it(
    tmp_path: Path, made: str, output: str, told: bool
) -> None:
    assert ("MEM103" in codes(tmp_path, STATE.format(made=made, output=output))) == told


SEARCH = """
import torch


def search(decoder, state, words):
    decoder.eval()
    step = 1
    while True:
        scores, state = decoder(words, state)
        words = scores.argmax(1)
        step += 1
        if {test}:
            break
    return words.tolist()
"""


@pytest.mark.parametrize(
    ("test", "severity"),
    [("step > 50", "note"), ("step >= decoder.longest", "note"), ("bool((words == 0).all())", "warning")],
)
def test_a_search_that_a_count_ends(tmp_path: Path, test: str, severity: str) -> None:
    (tmp_path / "search.py").write_text(SEARCH.format(test=test), encoding="utf-8")
    found = memlint.lint([tmp_path], isolated=True).findings
    assert {one.severity for one in found if one.code == "MEM103"} == {severity}


FEW = """
import torch


def outputs(model, loader):
    model.eval()
    kept = []
    for step, x in enumerate(loader):
        kept.append(model(x.cuda()))
        {then}
    return torch.cat(kept).mean().item()
"""


@pytest.mark.parametrize(
    ("then", "told"),
    [
        ("if step > 5: break", False),
        ("if x is None or step > 5: break", False),
        ("if x is None and step > 5: break", True),
        ("if x is None: break", True),
    ],
)
def test_a_loop_over_data_that_ends_after_a_few_batches(tmp_path: Path, then: str, told: bool) -> None:
    assert ("MEM102" in codes(tmp_path, FEW.format(then=then))) == told


PLAIN = """
import torch


def train(model, loader, optimizer, names, epochs):
    history = []
    for epoch in range(epochs):
        log = {{}}
        sums = {{name: 0.0 for name in names}}
        for x, y in loader:
            losses = model(x.cuda(), y.cuda())
            total = 0
            for name in names:
                sums[name] = sums[name] + losses[name]
                total = total + losses[name]
            optimizer.zero_grad()
            total.backward()
            optimizer.step()
        for name in names:
            sums[name] = {last}
        for name in names:
            log["loss_" + name] = sums[name]
        history.append(log)
    return history
"""


@pytest.mark.parametrize(("last", "told"), [("sums[name].item()", False), ("sums[name] / 2", True)])
def test_members_that_a_loop_over_their_names_makes_plain(tmp_path: Path, last: str, told: bool) -> None:
    (tmp_path / "train.py").write_text(PLAIN.format(last=last), encoding="utf-8")
    found = memlint.lint([tmp_path], isolated=True).findings
    assert any(one.code == "MEM102" and "history" in one.message for one in found) == told
