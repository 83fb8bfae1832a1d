"""Hooks that store, or are added, only where code before lets them, and modules that are new in each round."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint


def found(folder: Path, code: str) -> list[str]:
    (folder / "program.py").write_text(code, encoding="utf-8")
    result = memlint.lint([folder], select=["MEM105"], isolated=True)
    assert not result.failures
    return [one.severity for one in result.findings]


ADDED = """
import copy
import functools

import torch
from torch import nn


def show(module, args, output):
    print(output.shape)


{decorator}
def attach(model):
    {before}
    model.layer4.register_forward_hook(show)
    return model


def train(model, loader):
    for x in loader:
        attach(model)
        model(x.cuda()).mean().backward()
"""


@pytest.mark.parametrize(
    ("decorator", "before", "expected"),
    [
        ("", "pass", ["warning"]),
        ("", "model = model.cuda()", ["warning"]),
        ("@torch.no_grad()", "print(model)", ["warning"]),
        ("", "if isinstance(model, nn.Linear):\n        return model", ["warning"]),
        ("", "if hasattr(model, 'shown'):\n        return model\n    model.shown = True", []),
        ("", "try:\n        return model.shown\n    except AttributeError:\n        pass", []),
        ("", "model = copy.deepcopy(model)", []),
        ("@functools.cache", "pass", []),
        ("@once", "pass", []),
    ],
)
def test_added_in_each_call(tmp_path: Path, decorator: str, before: str, expected: list[str]) -> None:
    assert found(tmp_path, ADDED.format(decorator=decorator, before=before)) == expected


def test_added_in_a_handler(tmp_path: Path) -> None:
    code = ADDED.format(decorator="", before="pass").replace(
        "    model.layer4.reg",
        "    try:\n        model.shown\n    except AttributeError:\n        model.shown = 1\n        model.layer4.reg",
    )
    assert found(tmp_path, code) == []


TRAINER = """
from torchvision.models import resnet18


class Trainer:
    def __init__(self):
        self.model = resnet18().cuda()

    def begin(self):
        {begin}

    def attach(self):
        self.model.layer4.register_forward_hook(lambda module, args, output: print(output.shape))

    def fit(self, loader):
        for x in loader:
            self.model(x.cuda()).mean().backward()


def main(loaders):
    trainer = Trainer()
    for loader in loaders:
        trainer.begin()
        trainer.attach()
        trainer.fit(loader)
"""


def test_a_method_puts_another_model(tmp_path: Path) -> None:
    assert found(tmp_path, TRAINER.format(begin="self.model = self.model.train()")) == ["warning"]
    assert found(tmp_path, TRAINER.format(begin="self.model = resnet18().cuda()")) == []


PROBE = """
import torch


class Probe:
    def __init__(self, layer):
        self.on = False
        self.seen = []
        layer.register_forward_hook(self.hook)

    def hook(self, module, args, output):
        {before}
        self.seen.append(output)


def train(model, loader):
    probe = Probe(model.layer4)
    for step, x in enumerate(loader):
        probe.on = step == 0
        model(x.cuda()).mean().backward()
"""


def test_a_hook_that_may_return_before_it_stores(tmp_path: Path) -> None:
    assert found(tmp_path, PROBE.format(before="print(self.on)")) == ["error"]
    assert found(tmp_path, PROBE.format(before="if not self.on:\n            return")) == []
