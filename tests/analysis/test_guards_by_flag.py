"""Guards that are chosen, made by a decorator, or switched by a flag: what is not known is not claimed."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest
from linting import codes_in

found = functools.partial(codes_in, name="evaluate.py")


DECORATED = """
import contextlib
import torch


def grad(flag=False):
    def decorate(function):
        def inner(*args):
            with torch.set_grad_enabled(flag):
                return function(*args)
        return inner
    return decorate


def inference(on):
    def decorate(function):
        @torch.inference_mode(not on)
        def inner(*args):
            return function(*args)
        return inner
    return decorate


class Quiet(contextlib.ContextDecorator):
    def __enter__(self):
        self.before = torch.is_grad_enabled()
        torch.set_grad_enabled(False)

    def __exit__(self, *args):
        torch.set_grad_enabled(self.before)


class Inference(torch.no_grad):
    pass


class Timer(contextlib.ContextDecorator):
    def __enter__(self):
        self.start = 0

    def __exit__(self, *args):
        print(self.start)


{decorator}
def evaluate(model, loader):
    model.eval()
    for x in loader:
        print(model(x).argmax())
"""


@pytest.mark.parametrize(
    ("decorator", "codes"),
    [
        ("@grad(False)", []),
        ("@grad()", []),
        ("@grad(WITH_GRADIENTS)", []),
        ("@inference(False)", []),
        ("@Quiet()", []),
        ("@Inference()", []),
        ("@Timer()", ["MEM201"]),
    ],
)
def test_decorators(tmp_path: Path, decorator: str, codes: list[str]) -> None:
    assert found(tmp_path, DECORATED.format(decorator=decorator)) == codes


CHOSEN = """
import torch

MODES = {"train": torch.enable_grad, "val": torch.no_grad}
NAMES = {"train": "training", "val": "validation"}


class Inference(torch.no_grad):
    pass


def evaluate(model, loader, phase):
    model.eval()
    with GUARD:
        for x in loader:
            print(model(x).argmax())
"""


@pytest.mark.parametrize(
    ("guard", "codes"),
    [
        ("MODES[phase]()", []),
        ("{True: torch.enable_grad, False: torch.no_grad}[phase]()", []),
        ("Inference()", []),
        ("torch.autograd.profiler.record_function(NAMES[phase])", ["MEM201"]),
    ],
)
def test_guards_that_are_chosen(tmp_path: Path, guard: str, codes: list[str]) -> None:
    assert found(tmp_path, CHOSEN.replace("GUARD", guard)) == codes


SWITCHED = """
import torch
from torch import nn


class Metric(nn.Module):
    def __init__(self, as_loss=False):
        super().__init__()
        self.net = nn.Linear(32, 10)
        self.as_loss = as_loss

    def forward(self, x):
        with GUARD:
            return self.net(x)


def make(name, as_loss=False):
    return Metric(as_loss=as_loss)


def main(loader):
    metric = make("ssim")
    metric.eval()
    for x in loader:
        print(metric(x).item())
"""


@pytest.mark.parametrize(
    ("guard", "codes"),
    [("torch.set_grad_enabled(self.as_loss)", []), ("torch.autocast('cuda')", ["MEM201"])],
)
def test_models_that_record_by_a_flag(tmp_path: Path, guard: str, codes: list[str]) -> None:
    assert found(tmp_path, SWITCHED.replace("GUARD", guard)) == codes


ENTERED = """
import torch


class Evaluator:
    def __init__(self, net):
        self.net = net

    def __enter__(self):
        self.net.eval()
        ENTERS

    def __exit__(self, *args):
        self.net.train()

    def run(self, loader):
        with self:
            for batch in loader:
                self.step(batch)

    def step(self, batch):
        print(self.net(batch).argmax(1))


def main(net: torch.nn.Module, loader):
    Evaluator(net).run(loader)
"""


@pytest.mark.parametrize(
    ("enters", "codes"),
    [
        ("self.guard = torch.no_grad(); self.guard.__enter__()", []),
        ("torch.set_grad_enabled(False)", []),
        ("print(self)", ["MEM201"]),
    ],
)
def test_objects_that_are_entered(tmp_path: Path, enters: str, codes: list[str]) -> None:
    assert found(tmp_path, ENTERED.replace("ENTERS", enters)) == codes
