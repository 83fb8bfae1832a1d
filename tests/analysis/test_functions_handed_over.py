"""Functions that callers hand to an object, which collects them and calls each of them in turn."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint

TRAINER = """
from collections import defaultdict
from torch import nn


class Trainer:
    def __init__(self, model: nn.Module, optimizer):
        self.model = model
        self.optimizer = optimizer
        self.hooks = {hooks}
        self.loss = None

    def register(self, hook, *args):
        {added}

    def fit(self, loader):
        for x, y in loader:
            self.loss = nn.functional.cross_entropy(self.model(x.cuda()), y.cuda())
            self.optimizer.zero_grad()
            self.loss.backward()
            self.optimizer.step()
            {called}
"""

MAIN = """
from torch import nn
from trainer import Trainer

kept = []


def record(trainer, *args):
    {body}


def main(model: nn.Module, loader, optimizer):
    trainer = Trainer(model, optimizer)
    {registered}
    trainer.fit(loader)
"""

ITSELF = ("[]", "self.hooks.append(hook)", "for hook in self.hooks:\n                hook(self)")
PAIRS = ("[]", "self.hooks.append((hook, args))", "for hook, args in self.hooks:\n                hook(self, *args)")
EVENTS = (
    "defaultdict(list)",
    "self.hooks['after'].append(hook)",
    "for hook in self.hooks['after']:\n                hook(self)",
)
#: the method that collects calls its object by another name
OF_THIS = (ITSELF[0], "self = None\n        this.hooks.append(hook)", ITSELF[2])
KEEPS = "kept.append(trainer.loss)"


@pytest.mark.parametrize(
    ("way", "body", "registered", "codes"),
    [
        pytest.param(ITSELF, KEEPS, "trainer.register(record)", ["MEM102"], id="a list"),
        pytest.param(PAIRS, KEEPS, "trainer.register(record, 1)", ["MEM102"], id="pairs"),
        pytest.param(EVENTS, KEEPS, "trainer.register(record)", ["MEM102"], id="lists by event"),
        pytest.param(OF_THIS, KEEPS, "trainer.register(record)", ["MEM102"], id="by another name of the object"),
        pytest.param(OF_THIS, "print(trainer)", "trainer.register(record)", [], id="by another name, keeps nothing"),
        pytest.param(ITSELF, "kept.append(trainer.loss.item())", "trainer.register(record)", [], id="a number"),
        pytest.param(ITSELF, "print(trainer.loss)", "trainer.register(record)", [], id="keeps nothing"),
        pytest.param(ITSELF, f"kept.clear()\n    {KEEPS}", "trainer.register(record)", [], id="one at a time"),
        pytest.param(ITSELF, KEEPS, "print(record)", [], id="never handed over"),
        pytest.param(ITSELF, KEEPS, "trainer.register(optimizer.hook)", [], id="something else"),
    ],
)
def test_handed_over(way: tuple[str, str, str], body: str, registered: str, codes: list[str], tmp_path: Path) -> None:
    hooks, added, called = way
    text = TRAINER.format(hooks=hooks, added=added, called=called)
    if way == OF_THIS:
        text = text.replace("register(self, hook", "register(this, hook")
    (tmp_path / "trainer.py").write_text(text, encoding="utf-8")
    (tmp_path / "main.py").write_text(MAIN.format(body=body, registered=registered), encoding="utf-8")
    result = memlint.lint([tmp_path], isolated=True)
    assert not result.failures
    assert [one.code for one in result.findings] == codes


TEST = """
from main import record
from trainer import Trainer


def test_hooks():
    seen = []
    trainer = Trainer(None, None)
    trainer.register({handed})
    trainer.fit([])
"""
LAMBDA = "lambda trainer: seen.append(trainer.loss)"


@pytest.mark.parametrize(
    ("registered", "handed", "found"),
    [
        pytest.param("pass", LAMBDA, [], id="a test's function"),
        pytest.param("pass", "record", [], id="the program's function, by a test"),
        pytest.param("trainer.register(record)", LAMBDA, [("MEM102", "medium")], id="by the program as well"),
        # whether the trainer that runs has it is unknown
        pytest.param(
            "Trainer(model, optimizer).register(record)", "print", [("MEM102", "medium")], id="by another object"
        ),
    ],
)
def test_by_whom(registered: str, handed: str, found: list[tuple[str, str]], tmp_path: Path) -> None:
    hooks, added, called = ITSELF
    (tmp_path / "trainer.py").write_text(TRAINER.format(hooks=hooks, added=added, called=called), encoding="utf-8")
    (tmp_path / "main.py").write_text(MAIN.format(body=KEEPS, registered=registered), encoding="utf-8")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_trainer.py").write_text(TEST.format(handed=handed), encoding="utf-8")
    result = memlint.lint([tmp_path], isolated=True)
    assert not result.failures
    assert [(one.code, one.confidence) for one in result.findings] == found
