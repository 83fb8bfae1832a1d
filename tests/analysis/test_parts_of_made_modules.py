"""What a part of a module keeps, where a function makes the module and runs it: however the module holds the part."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.linting import codes_in

PROGRAM = """
import torch
from torch import nn


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.kept = nn.Linear(512, 512), []

    def forward(self, x):
        {before}
        x = self.linear(x)
        self.kept.append(x.detach())
        return x


class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = Layer()

    def forward(self, x):
        return self.layer(x)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        {parts}

    def forward(self, x):
        {run}
        return x


def train(loader):
    net = Net().cuda()
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for x in loader:
        optimizer.zero_grad()
        net(x.cuda()).mean().backward()
        optimizer.step()
"""
LOOP = "for one in self.parts:\n            x = one(x)"
ITEMS = "for name, one in self.parts.items():\n            x = one(x)"
HELD = [
    pytest.param("self.part = Layer()", "x = self.part(x)", id="an attribute"),
    pytest.param("self.part = Inner()", "x = self.part(x)", id="a part of a part"),
    pytest.param("self.parts = nn.ModuleList([Layer() for _ in range(3)])", LOOP, id="a list"),
    pytest.param("self.parts = nn.ModuleList()\n        self.parts.append(Layer())", LOOP, id="a list that grows"),
    pytest.param(
        "parts = [nn.ReLU()]\n        parts.append(Layer())\n        self.parts = nn.ModuleList(parts)",
        LOOP,
        id="of several",
    ),
    pytest.param(
        "parts = [nn.Linear(512, 512, bias=bool(at)) for at in range(2)]"
        "\n        parts += [nn.Linear(512, 512), nn.ReLU()]"
        "\n        parts += [nn.Dropout(0.1), nn.GELU(), Layer()]\n        self.parts = nn.ModuleList(parts)",
        LOOP,
        id="of many",
    ),
    pytest.param("self.parts = nn.ModuleList([Layer()])", "x = self.parts[0](x)", id="by position"),
    pytest.param("self.parts = nn.ModuleDict({'a': Layer()})", "x = self.parts['a'](x)", id="by name"),
    pytest.param("self.parts = nn.ModuleDict({'a': Layer()})", LOOP.replace("parts:", "parts.values():"), id="values"),
    pytest.param("self.parts = nn.ModuleDict({'a': Layer()})", ITEMS, id="names and values"),
    pytest.param("self.parts = nn.Sequential(Layer(), nn.ReLU())", "x = self.parts(x)", id="a chain"),
]


@pytest.mark.parametrize(("parts", "run"), HELD)
def test_what_a_part_keeps_is_kept(tmp_path: Path, parts: str, run: str) -> None:
    assert codes_in(tmp_path, PROGRAM.format(before="pass", parts=parts, run=run)) == ["MEM104"]


@pytest.mark.parametrize(("parts", "run"), HELD)
def test_what_a_part_begins_anew_is_not(tmp_path: Path, parts: str, run: str) -> None:
    assert codes_in(tmp_path, PROGRAM.format(before="self.kept = []", parts=parts, run=run)) == []


#: further classes, in front of `Net`
MADE = """
def make(size=512):
    return Layer() if size == 512 else None


class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = make()

    def forward(self, x):
        return self.part(x)


"""
LINE = "self.kept.append(x.detach())"
WRITTEN = [
    pytest.param("Layer", "recording", id="a class with a name in lower case"),
    pytest.param("forward(self, x):\n        ", "forward(this, x):\n        self = this\n        ", id="self by name"),
    pytest.param(LINE, "one = self\n        one.kept.append(x.detach())", id="another name of the object"),
    pytest.param(LINE, "kept = self.kept\n        kept.append(x.detach())", id="a name of the attribute"),
    pytest.param(LINE, "kept = self.kept\n        kept += [x.detach()]", id="a name of the attribute, in place"),
    pytest.param(LINE, "getattr(self, 'kept').append(x.detach())", id="what a function gives of the object"),
    pytest.param("class Net", MADE + "class Net", id="made by a function"),
]


@pytest.mark.parametrize(("before", "codes"), [("pass", ["MEM104"]), ("self.kept = []", [])])
@pytest.mark.parametrize(("old", "new"), WRITTEN)
def test_however_it_is_kept(tmp_path: Path, old: str, new: str, before: str, codes: list[str]) -> None:
    part = "Outer" if "Outer" in new else "Layer"
    program = PROGRAM.format(before=before, parts=f"self.parts = nn.ModuleList([{part}() for _ in range(3)])", run=LOOP)
    assert old in program
    assert codes_in(tmp_path, program.replace(old, new)) == codes


@pytest.mark.parametrize(("before", "codes"), [("pass", ["MEM104"]), ("self.kept = []", [])])
def test_a_chain_of_chains_is_read_once(tmp_path: Path, before: str, codes: list[str]) -> None:
    chain = "nn.ReLU()"
    for _ in range(40):  # each spread list is evaluated once: twice would be 2 ** 40 evaluations of the innermost
        chain = f"nn.Sequential(*[{chain}])"
    parts = f"self.part = nn.Sequential(Layer(), {chain})"
    assert codes_in(tmp_path, PROGRAM.format(before=before, parts=parts, run="x = self.part(x)")) == codes
