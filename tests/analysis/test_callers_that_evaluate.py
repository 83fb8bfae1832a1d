"""One body for training and evaluation, whose callers say by what they pass which of the two it is."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint

EPOCHS = """
import torch
from torch import nn


def run_epoch(loader, model, crit, {param}):
    total = 0
    for x, y in loader:
        {guard}
        loss = crit(model(x.cuda()), y.cuda())
        if {test}:
            loss.backward()
        total += loss.item()
    return total / len(loader)


def main(model, train_loader, val_loader, extra_loader, optimizer):
    crit = nn.CrossEntropyLoss()
    for epoch in range(10):
        model.train()
        run_epoch(train_loader, model, crit, {on})
        {other}
"""

STEPS = """
import torch
from torch import nn


class Trainer:
    def __init__(self, model, optimizer):
        self.model, self.optimizer = model, optimizer
        self.crit = nn.CrossEntropyLoss()

    def step(self, batch, {param}=True):
        x, y = batch
        loss = self.crit(self.model(x.cuda()), y.cuda())
        if {param}:
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
        return {returned}

    def fit(self, train_loader, val_loader):
        self.model.train()
        for batch in train_loader:
            self.step(batch)
        for batch in val_loader:
            {call}
"""


def found(folder: Path, text: str) -> bool:
    (folder / "main.py").write_text(text, encoding="utf-8")
    result = memlint.lint([folder], isolated=True)
    assert not result.failures
    return any(one.code == "MEM201" for one in result.findings)


@pytest.mark.parametrize(
    ("param", "guard", "test", "on", "other", "expected"),
    [
        ("opt=None", "", "opt is not None", "optimizer", "run_epoch(val_loader, model, crit)", True),
        ("train", "", "train", "True", "run_epoch(val_loader, model, crit, False)", True),
        ("phase", "", 'phase == "train"', '"train"', 'run_epoch(extra_loader, model, crit, "val")', True),
        # nothing says that it is an evaluation
        ("update", "", "update", "True", "run_epoch(extra_loader, model, crit, False)", False),
        ("opt=None", "", "opt is not None", "optimizer", "run_epoch(extra_loader, model, crit)", False),
        # the caller guards it, or the function itself
        ("train", "", "train", "True", "with torch.no_grad(): run_epoch(val_loader, model, crit, False)", False),
        ("train", "torch.set_grad_enabled(train)", "train", "True", "run_epoch(val_loader, model, crit, False)", False),
    ],
)
def test_a_function_for_both(
    tmp_path: Path, param: str, guard: str, test: str, on: str, other: str, expected: bool
) -> None:
    text = EPOCHS.format(param=param, guard=guard or "pass", test=test, on=on, other=other)
    assert found(tmp_path, text) == expected


@pytest.mark.parametrize(
    ("param", "returned", "call", "expected"),
    [
        ("train", "loss.item()", "self.step(batch, train=False)", True),
        ("is_training", "loss.item()", "self.step(batch, False)", True),
        # the caller may run the backward on what it gets
        ("train", "loss", "self.step(batch, train=False).backward()", False),
        ("train", "loss.item()", "self.step(batch)", False),
    ],
)
def test_a_method_for_both(tmp_path: Path, param: str, returned: str, call: str, expected: bool) -> None:
    assert found(tmp_path, STEPS.format(param=param, returned=returned, call=call)) == expected
