"""What is called on a module and is no model: its own machinery, tokenizers, functions that it was given."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint


def codes(tmp_path: Path, **files: str) -> list[str]:
    for name, code in files.items():
        (tmp_path / f"{name}.py").write_text(code)
    result = memlint.lint([tmp_path])
    assert not result.failures
    return [found.code for found in result.findings]


BASE = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, body, score, tokenizer):
        super().__init__()
        self.body, self._score, self.tokenizer = body, score, tokenizer
        self.layer = nn.Linear(8, 8)

    def forward(self, x):
        return self.layer(x)

    def _apply(self, fn, recurse=True):
        for part in self.children():
            super(Net, part)._apply(fn, recurse=False)
        return self

    def compare(self, a, b):
        return self._score(torch.as_tensor(a), torch.as_tensor(b))

    def encode(self, x):
        return self.layer(x) * 2

    def preprocess(self, text):
        return self.tokenizer(text)


class Named(Net):
    @property
    def measure(self):
        return self._name

    @measure.setter
    def measure(self, name):
        self._name = name
        self._measure = TABLE[name]

    def measured(self, a, b):
        return self._measure(a, b)


def evaluate(net: Named, loader):
    net.eval()
    for x in loader:
        print({call})
"""


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        pytest.param("net(x).cpu()", ["MEM201"], id="the model"),
        pytest.param("net.encode(x).cpu()", ["MEM201"], id="a part"),
        pytest.param("net._apply(lambda part: part.half())", [], id="what moves it"),
        pytest.param("net.compare(x, x).cpu()", [], id="a function that it was given"),
        pytest.param("net.measured(x, x).cpu()", [], id="a function that a setter gave it"),
        pytest.param("net.preprocess(x).cpu()", [], id="a tokenizer"),
    ],
)
def test_calls_on_a_module(tmp_path: Path, call: str, expected: list[str]) -> None:
    assert codes(tmp_path, program=BASE.replace("{call}", call)) == expected


LOADED = """
import clip
import torch


def features(loader, device):
    model, transform = clip.load("ViT-B/32", device=device)
    model.eval()
    for image in loader:
        print({call}.detach().cpu())
"""


@pytest.mark.parametrize(("call", "expected"), [("model(image)", ["MEM201"]), ("transform(image)", [])])
def test_a_model_that_comes_with_its_transform(tmp_path: Path, call: str, expected: list[str]) -> None:
    assert codes(tmp_path, program=LOADED.format(call=call)) == expected


FORWARD = """
import importlib

from torch import nn


class Agent(nn.Module):
    def __init__(self, name):
        super().__init__()
        self.model = importlib.import_module(name).make()

    def forward(self, x):
        return self.model.forward(x)

    def predict(self, x):
        self.model.eval()
        return self.forward(x).detach()

    def validate(self, loader):
        for x in loader:
            print(self.predict(x))


{others}
"""

OTHER = """
class Net{number}(nn.Module):
    def forward(self, x):
        return x
"""


def test_a_forward_is_one_however_many_there_are(tmp_path: Path) -> None:
    others = "\n".join(OTHER.format(number=number) for number in range(12))
    assert codes(tmp_path, program=FORWARD.replace("{others}", others)) == ["MEM201"]


SETTER = """
import torch
from torch import nn


class First(nn.Module):
    def set_names(self, names):
        self.names = names


class Second(nn.Module):
    def __init__(self):
        super().__init__()
        self.text = nn.Linear(8, 8)

    def set_names(self, names):
        self.embedded = self.text(names)


def validate(model, loader, names):
    model.eval()
    model.set_names(names)
    with torch.no_grad():
        for x in loader:
            print(model(x).mean())
"""


def test_a_setter_that_one_class_of_many_computes_in(tmp_path: Path) -> None:
    assert codes(tmp_path, program=SETTER) == []


INHERITED = """
import torch
from torch import nn


class Process(nn.Module):
    def predict(self, x):
        self.eval()
        self.set_data(x)
        with torch.no_grad():
            return self(x)


class Preferences(Process):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def set_data(self, x):
        self.known = self.layer(x)


def evaluate(process: Process, loader):
    process.eval()
    for x in loader:
        print(process.predict(x))
"""


def test_what_is_named_like_a_setter_and_gives_nothing_is_no_evaluation(tmp_path: Path) -> None:
    assert codes(tmp_path, program=INHERITED) == []


DECORATORS = """
import functools

import torch

NEW = torch.__version__ >= "1.9"


def either():
    def decorate(function):
        if torch.is_inference_mode_enabled():
            return function
        return (torch.inference_mode if NEW else torch.no_grad)()(function)

    return decorate


def inner(function):
    @torch.no_grad()
    @functools.wraps(function)
    def run(*args):
        return function(*args)

    return run


def timed(function):
    def run(*args):
        with torch.no_grad():
            print("begins")
        return function(*args)

    return run


def on():
    def decorate(function):
        return torch.inference_mode(False)(function)

    return decorate
"""

DECORATED = """
import torch
from torch import nn

from guards import either, inner, on, timed


class Text(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 8)

    {decorator}
    def encode(self, x):
        return self.layer(x)


def evaluate(text: Text, loader):
    text.eval()
    for x in loader:
        print(text.encode(x).cpu())
"""


@pytest.mark.parametrize(
    ("decorator", "expected"),
    [("@either()", []), ("@inner", []), ("@timed", ["MEM201"]), ("@on()", ["MEM201"])],
)
def test_a_guard_that_the_projects_own_decorator_puts_around(
    tmp_path: Path, decorator: str, expected: list[str]
) -> None:
    assert codes(tmp_path, guards=DECORATORS, program=DECORATED.format(decorator=decorator)) == expected
