"""Guards in boolean operations: `guard and other` enters the other context manager alone."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest
from linting import codes_in

found = functools.partial(codes_in, name="evaluate.py")

EVALUATE = """
import torch
from torch import autocast, inference_mode, no_grad
from outside import quiet, timer


def evaluate(model, loader, half, pick):
    model.eval()
    hits = 0
    with {context}:
        for x, y in loader:
            hits += (model(x.cuda()).argmax(1).cpu() == y).sum().item()
    return hits
"""


@pytest.mark.parametrize(
    ("context", "codes"),
    [
        ('torch.no_grad() and torch.autocast("cuda")', ["MEM203"]),
        ("inference_mode() and timer(loader) as shown", ["MEM203"]),
        ('no_grad() and inference_mode() and autocast("cuda")', ["MEM203"]),
        ('no_grad() and autocast("cuda") and timer(loader) as shown', ["MEM203"]),
        ("no_grad() and half", ["MEM203"]),
        # the last one is a guard
        ("no_grad() and inference_mode()", []),
        ('autocast("cuda") and no_grad()', []),
        ("half and no_grad()", []),
        # the first one is true
        ("no_grad() or half", []),
        ('no_grad(), autocast("cuda")', []),
        # the block has a guard of its own
        ('no_grad() and autocast("cuda"), inference_mode()', []),
        # a guard on one side only: a default
        ("half or no_grad()", []),
        ("half or quiet()", ["MEM201"]),
    ],
)
def test_a_guard_in_a_boolean_operation(tmp_path: Path, context: str, codes: list[str]) -> None:
    assert found(tmp_path, EVALUATE.replace("{context}", context)) == codes


STEP = """
import torch


def step(model, decoder, x, y, optimizer, criterion):
    with torch.no_grad() and torch.autocast("cuda"):
        {body}
    {after}
"""


@pytest.mark.parametrize(
    ("body", "after", "codes"),
    [
        ("loss = criterion(model(x), y)", "loss.backward(); optimizer.step(); optimizer.zero_grad()", []),
        ("model.eval(); out = model(x)", "return out.argmax(1).cpu()", ["MEM203"]),
        # not known to be a network
        ("out = decoder.step(x)", "return out", ["MEM203"]),
        ("with torch.no_grad(): out = decoder.step(x)".replace(": ", ":\n            "), "return out", []),
        ("out = decoder.step(x)", "criterion(out, y).backward(); optimizer.step(); optimizer.zero_grad()", []),
    ],
)
def test_a_hidden_guard_around_what_trains(tmp_path: Path, body: str, after: str, codes: list[str]) -> None:
    assert found(tmp_path, STEP.replace("{body}", body).replace("{after}", after)) == codes


AFTER = """
import torch


def evaluate(model, loader):
    model.eval()
    hits = 0
    with torch.no_grad() and torch.autocast("cuda"):
        first = next(iter(loader))[0].cuda()
    for x, y in loader:
        hits += (model(x.cuda()).argmax(1).cpu() == y).sum().item()
    return first, hits
"""


def test_a_hidden_guard_is_not_meant_for_what_follows_its_block(tmp_path: Path) -> None:
    assert sorted(found(tmp_path, AFTER)) == ["MEM201", "MEM203"]


PHASES = """
import contextlib
import torch


def run(model, loader, criterion, optimizer, train):
    total = 0.0
    with {context}:
        for x, y in loader:
            loss = criterion(model(x.cuda()), y.cuda())
            if train:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            total += loss
    return total
"""


@pytest.mark.parametrize(
    ("context", "codes"),
    [
        ("not train and torch.no_grad() or contextlib.nullcontext()", ["MEM101"]),
        ("contextlib.nullcontext() if train else torch.no_grad()", ["MEM101"]),
        ("torch.no_grad() or contextlib.nullcontext()", []),
    ],
)
def test_a_guard_that_a_flag_chooses(tmp_path: Path, context: str, codes: list[str]) -> None:
    assert found(tmp_path, PHASES.replace("{context}", context)) == codes
