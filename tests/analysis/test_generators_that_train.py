"""Generators that run a step of training for each item: whoever collects what they yield keeps a graph of each step."""

from __future__ import annotations

from pathlib import Path

import pytest
from linting import codes_in

PROGRAM = """
import torch
from torch import nn


def steps(model, loader, optimizer):
    {rounds}


def train(loader):
    model = nn.Linear(10, 1).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(10):
        {collect}
"""

TRAINS = """for x, y in loader:
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield {value}"""

LOOP = """total = 0
        for loss in steps(model, loader, optimizer):
            total += loss
        print(epoch, total)"""

APPENDS = """losses = []
        for i, loss in enumerate(steps(model, loader, optimizer)):
            losses.append(loss)
        print(epoch, losses)"""


@pytest.mark.parametrize(
    ("collect", "code"),
    [
        pytest.param(LOOP, "MEM101", id="a sum"),
        pytest.param(APPENDS, "MEM102", id="a list that a loop fills"),
        pytest.param("print(list(steps(model, loader, optimizer)))", "MEM102", id="list()"),
        pytest.param("print([one for one in steps(model, loader, optimizer)])", "MEM102", id="a comprehension"),
        pytest.param("print(sum(steps(model, loader, optimizer)))", "MEM102", id="sum()"),
    ],
)
def test_what_they_yield_is_kept_each_step(tmp_path: Path, collect: str, code: str) -> None:
    program = PROGRAM.format(rounds=TRAINS.format(value="loss"), collect=collect)
    assert codes_in(tmp_path, program) == [code]
    program = PROGRAM.format(rounds=TRAINS.format(value="loss.item()"), collect=collect)
    assert codes_in(tmp_path, program) == []


PARTS = """for x, y in loader:
        yield nn.functional.mse_loss(model(x), y)"""

AFTERWARDS = """for x, y in loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
    for weight in model.parameters():
        yield weight.square().sum()"""

STEP = """total = 0
        for part in steps(model, loader, optimizer):
            total += part
        total.backward()
        optimizer.step()"""


@pytest.mark.parametrize(
    "rounds", [pytest.param(PARTS, id="no backward"), pytest.param(AFTERWARDS, id="a backward before the first item")]
)
def test_the_items_may_be_the_parts_of_one_step(tmp_path: Path, rounds: str) -> None:
    assert codes_in(tmp_path, PROGRAM.format(rounds=rounds, collect=STEP)) == []


FEW = """for scale in (1, 2):
        loss = nn.functional.mse_loss(model(next(iter(loader))[0] * scale), torch.zeros(8, 1).cuda())
        loss.backward()
        yield loss"""


@pytest.mark.parametrize(
    "collect", [APPENDS, "print(list(steps(model, loader, optimizer)))", "print(sum(steps(model, loader, optimizer)))"]
)
def test_a_literal_bounds_the_items(tmp_path: Path, collect: str) -> None:
    assert codes_in(tmp_path, PROGRAM.format(rounds=FEW, collect=collect)) == []


def test_a_generator_passes_on_the_items_of_another(tmp_path: Path) -> None:
    inner = PROGRAM.format(rounds=TRAINS.format(value="loss"), collect=APPENDS).replace("def steps(", "def rounds(")
    passes = "def steps(model, loader, optimizer):\n    yield from rounds(model, loader, optimizer)\n\n\ndef rounds("
    assert codes_in(tmp_path, inner.replace("def rounds(", passes)) == ["MEM102"]
