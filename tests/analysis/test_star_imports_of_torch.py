"""``from torch.nn import *``: what it binds is known, where nothing else may bind the name."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint
from memlint import knowledge

PROGRAM = """
{imports}


class Net({base}):
    def __init__(self):
        super().__init__()
        self.layers = {layers}(Conv2d(3, 64, 3), ReLU(), Conv2d(64, 64, 3))

    def forward(self, x):
        return {function}(self.layers(x))


def evaluate(loader):
    net = Net().cuda()
    net.eval()
    found = []
    {guard}
        for x, _ in loader:
            found.append(net(x.cuda()).argmax(1).cpu())
    return found


evaluate(input())
"""
MINE = (
    "class Sequential:\n    def __init__(self, *args):\n        pass\n\n    def __call__(self, x):\n        return 0\n"
)


def codes(folder: Path, **words: str) -> set[str]:
    usual = {"base": "Module", "layers": "Sequential", "function": "relu", "guard": "if True:"}
    (folder / "case.py").write_text(PROGRAM.format(**(usual | words)))
    (folder / "mine.py").write_text(MINE)
    return {one.code for one in memlint.lint([folder / "case.py"], isolated=True).findings}


NN = "from torch.nn import *"
FUNCTIONS = "from torch.nn.functional import *"


@pytest.mark.parametrize(
    ("imports", "found"),
    [
        (f"{FUNCTIONS}\n{NN}", True),
        (f"{NN}\nfrom torch.nn.functional import relu", True),
        (f"from theirs import *\n{FUNCTIONS}\n{NN}", True),
        (f"{NN}\n{FUNCTIONS}\nfrom typing import *\nfrom math import *", True),
        (f"try:\n    {NN}\nexcept ImportError:\n    raise\n{FUNCTIONS}", True),
        # the project's own layers, which record nothing
        (f"{FUNCTIONS}\n{NN}\nfrom mine import Sequential", False),
        (f"{FUNCTIONS}\n{NN}\nfrom mine import *", False),
        (f"{FUNCTIONS}\n{NN}\n\n\n{MINE}", False),
    ],
)
def test_layers_that_a_star_import_binds(tmp_path: Path, imports: str, found: bool) -> None:
    assert ("MEM201" in codes(tmp_path, imports=imports)) is found


@pytest.mark.parametrize(
    ("imports", "guard", "found"),
    [
        ("from torch import *", "with no_grad():", False),
        ("from torch import *", "with inference_mode():", False),
        ("from torch import *", "if True:", True),
        ("from torch.autograd import *", "with no_grad():", False),
    ],
)
def test_guards_that_a_star_import_binds(tmp_path: Path, imports: str, guard: str, found: bool) -> None:
    assert ("MEM201" in codes(tmp_path, imports=f"{FUNCTIONS}\n{NN}\n{imports}", guard=guard)) is found


MATHS = """
{imports}


def train(model, loader, optimizer):
    total = 0
    for x, y in loader:
        loss = mse_loss(model(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += exp(loss)
    return total
"""


@pytest.mark.parametrize(
    ("imports", "found"),
    [
        (f"{FUNCTIONS}\nfrom torch import *", True),
        (f"from math import *\n{FUNCTIONS}\nfrom torch import *", True),
        # behind it, another star import binds the name: to a function of numbers, or to nobody knows what
        (f"{FUNCTIONS}\nfrom torch import *\nfrom math import *", False),
        (f"{FUNCTIONS}\nfrom torch import *\nfrom theirs import *", False),
        (f"{FUNCTIONS}\nfrom torch import *\nfrom math import exp", False),
    ],
)
def test_the_last_import_binds_a_name(tmp_path: Path, imports: str, found: bool) -> None:
    (tmp_path / "train.py").write_text(MATHS.format(imports=imports))
    findings = memlint.lint([tmp_path], isolated=True).findings
    assert ("MEM101" in {one.code for one in findings if one.confidence == "high"}) is found


@pytest.mark.torch
@pytest.mark.parametrize("module", sorted(knowledge.read("stars.toml")))
def test_what_the_tables_say_that_a_star_import_binds(module: str) -> None:
    bound: dict[str, object] = {}
    exec(f"from {module} import *", bound)
    assert knowledge.star_names(module)
    assert len(knowledge.star_names(module) - bound.keys()) <= 3, "(a release binds a few more or fewer)"
