"""What callers say of a helper: evaluated by one and trained by another, handed on, and who keeps what it gives."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint
from memlint import Finding

HELPER = """
from typing import NamedTuple

import torch
from torch import nn


class Step(NamedTuple):
    hidden: torch.Tensor
    words: list


class Parser(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(8, 8)
        self.score = nn.Linear(8, 1)

    def forward(self, steps):
        return self.score(torch.stack([step.hidden for step in steps]))


def begin(net: Parser, words):
    hidden = net.first(words)
    return [Step(hidden=one, words=words)._replace(words=None) for one in hidden]


def evaluate(net: Parser, loader):
    net.eval()
    for words in loader:
        print(len(begin(net, words)))


def step(net: Parser, words, optimizer):
    steps = begin(net, words)
    loss = net(steps).mean()
    {train}
"""


def findings(tmp_path: Path, code: str, name: str = "program") -> list[Finding]:
    (tmp_path / f"{name}.py").write_text(code)
    result = memlint.lint([tmp_path])
    assert not result.failures
    return list(result.findings)


@pytest.mark.parametrize(
    "train",
    [
        pytest.param("loss.backward()\n    optimizer.step()", id="one caller trains"),
        pytest.param("return loss", id="one gives the loss on"),
        pytest.param("pass", id="none trains"),
    ],
)
def test_a_helper_that_one_caller_evaluates(tmp_path: Path, train: str) -> None:
    """What it runs it gives to its callers: the guard is missing where one of them evaluates."""
    code = HELPER.replace("{train}", train)
    lines = [code.splitlines()[item.line - 1].strip() for item in findings(tmp_path, code) if item.code == "MEM201"]
    assert lines == ["print(len(begin(net, words)))"]


HANDED = """
import outside
import torch
from torch import nn


class Reader:
    def __init__(self, net: nn.Module):
        self.net = net
        self.net.eval()

    def read(self, batch):
        return self.net(batch).argmax(-1)

    def all(self, loader):
        return [{call} for batch in loader]


def guarded(function, batch):
    with torch.no_grad():
        return function(batch)
"""


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("guarded(self.read, batch)", []),
        ("outside.run(self.read, batch)", ["MEM201"]),
        ("self.read(batch)", ["MEM201"]),
    ],
)
def test_a_method_that_is_handed_on(tmp_path: Path, call: str, expected: list[str]) -> None:
    assert [item.code for item in findings(tmp_path, HANDED.format(call=call))] == expected


KEPT = """
import torch


def {name}(model: torch.nn.Module, loader):
    model.eval()
    kept = []
    for batch in loader:
        kept.append(model(batch))
    print(len(kept))
"""


def test_the_place_that_keeps_the_graph_is_named(tmp_path: Path) -> None:
    call, store = sorted(findings(tmp_path, KEPT.format(name="evaluate")), key=lambda item: item.code, reverse=True)
    assert (call.code, call.severity, store.code) == ("MEM201", "error", "MEM102")
    assert "because `kept` keeps it" in call.message
    assert "`kept` keeps" in store.message


def test_no_finding_speaks_of_one_that_is_not_shown(tmp_path: Path) -> None:
    (call,) = findings(tmp_path, KEPT.format(name="test_model"), "test_model")
    assert (call.code, call.severity) == ("MEM201", "warning")


NET = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def forward(self, x):
        return self.layer(x)

"""
MANY = """
def step_{at}(net: Net, x, loader):
    {calls}
    return net(x)

"""


def test_functions_that_call_one_another_in_all_ways(tmp_path: Path) -> None:
    """The ways up through their callers are millions: each function is asked once."""
    names = range(24)
    code = NET + "".join(
        MANY.format(at=at, calls="\n    ".join(f"step_{other}(net, x, loader)" for other in names)) for at in names
    )
    code += """
def evaluate(net: Net, loader):
    net.eval()
    for x in loader:
        print(step_0(net, x, loader).argmax())
"""
    assert [item.code for item in findings(tmp_path, code)] == ["MEM201"]
