"""Code that raises whenever it runs: what is found in it is a note, with the reason; other code keeps its severity."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint
from memlint import Finding

HELPERS = """
import torch
from torch import nn


def score(x, device, *, scale=1.0):
    return x.to(device) * scale


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layer = nn.Linear(width, width)

    def forward(self, x):
        return self.layer(x)
"""
EVALUATE = """
import torch
import helpers
from helpers import Net, score


def evaluate(loader, net=None):
    {before}
    model = Net(4).cuda()
    model.eval()
    total = 0
    for x in loader:
        {inside}
        total += model(x).argmax().item()
    return total
"""


def finding(tmp_path: Path, text: str) -> Finding:
    (tmp_path / "helpers.py").write_text(HELPERS)
    (tmp_path / "run.py").write_text(text)
    result = memlint.lint([tmp_path])
    assert not result.failures
    (found,) = [item for item in result.findings if item.code == "MEM201"]
    return found


def of(before: str = "pass", inside: str = "pass") -> str:
    return EVALUATE.format(before=before, inside=inside)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (of(inside="score(x)"), "`score()` is not given `device`"),
        (of(inside="y = [score(x, 'cpu', 2.0)]"), "`score()` takes 2 positional arguments and is given 3"),
        (of(inside="helpers.score(x, 'cpu', factor=2.0)"), "`helpers.score()` has no parameter `factor`"),
        (of(inside="score(x, x=x, device='cpu')"), "`score()` is given `x` twice"),
        (of("Net()"), "`Net()` is not given `width`"),
        (of("with open('log') as log:\n        score(1)"), "`score()` is not given `device`"),
        (of("for part in parts: print(part)"), "`parts` is not defined"),
        (of("x = helpers.Network(4)"), "`helpers` has no `Network`"),
        (of(inside="x = x.to(DEVICE)"), "`DEVICE` is not defined"),
    ],
)
def test_it_is_said_why(tmp_path: Path, text: str, reason: str) -> None:
    found = finding(tmp_path, text)
    assert found.severity == "note"
    assert reason in found.message


OBJECT = """
import torch
from helpers import Net


class Evaluator:
    def __init__(self, model):
        {init}
        self.model = Net(4)

    def load(self, path):
        return torch.load(path)

    def evaluate(self, loader):
        self.model.eval()
        {inside}
        return [self.model(x).argmax().item() for x in loader]
"""


@pytest.mark.parametrize(
    ("init", "inside", "reason"),
    [
        ("self.other = Net(width=4, depth=2)", "pass", "`Net()` has no parameter `depth`"),
    ],
)
def test_an_object_that_cannot_be_made_or_used(tmp_path: Path, init: str, inside: str, reason: str) -> None:
    found = finding(tmp_path, OBJECT.format(init=init, inside=inside))
    assert found.severity == "note"
    assert reason in found.message


@pytest.mark.parametrize(
    ("before", "inside"),
    [
        pytest.param("pass", "score(x, 'cpu')", id="it fits"),
        pytest.param("pass", "score(*[x, 'cpu'])", id="starred"),
        pytest.param("given = {}\n    score(1, **given)", "pass", id="spread"),
        pytest.param("if net: score(1)", "pass", id="on one way only"),
        pytest.param("net and score(1)", "pass", id="on one side of and"),
        pytest.param("late = lambda: score(1)", "pass", id="in a lambda"),
        pytest.param("try:\n        score(1)\n    except TypeError:\n        pass", "pass", id="tried"),
        pytest.param("import contextlib\n    with contextlib.suppress(TypeError): score(1)", "pass", id="suppressed"),
        pytest.param("score = print\n    score(1)", "pass", id="another of that name"),
        pytest.param("del net", "pass", id="deleted"),
        pytest.param("print(__file__, __name__)", "pass", id="names of every module"),
        pytest.param("exec('late = 1')\n    print(late)", "pass", id="made by exec"),
        pytest.param("print([late for late in 'abc'], late)", "pass", id="bound in another scope"),
        pytest.param("helpers.Network = Net\n    helpers.Network(4)", "pass", id="put into the module"),
        pytest.param("import pytest\n    with pytest.raises(TypeError): score(1)", "pass", id="awaited"),
        pytest.param("def late(z): undefined(z)", "pass", id="in a function that nobody calls"),
        pytest.param("match net:\n        case {'a': a, **rest}: print(rest)", "pass", id="captured"),
    ],
)
def test_what_may_well_run(tmp_path: Path, before: str, inside: str) -> None:
    found = finding(tmp_path, of(before, inside))
    assert found.severity == "warning"
    assert "raises" not in found.message


@pytest.mark.parametrize(
    "change",
    [
        pytest.param("from elsewhere import *", id="from outside"),
        pytest.param("def put(other):\n    global score\n    score = other", id="put in its place"),
        pytest.param("def score(x): ...\n\n\ndef score(x, device): ...", id="defined twice"),
        pytest.param("import functools\n\nscore = functools.partial(score, device='cpu')", id="bound again"),
        pytest.param("from elsewhere import wrap\n\n\n@wrap\ndef score(x, device): ...", id="decorated"),
    ],
)
def test_a_signature_that_is_not_known(tmp_path: Path, change: str) -> None:
    text = of(inside="score(x)").replace("\n\n\ndef evaluate", f"\n{change}\n\n\ndef evaluate")
    assert finding(tmp_path, text).severity == "warning"


@pytest.mark.parametrize("name", ["run.py", "other.py"])
def test_a_module_that_is_given_names_by_others(tmp_path: Path, name: str) -> None:
    text = of("print(helpers.device())")
    if name == "run.py":
        text += "\n\nhelpers.device=lambda: 'cuda'\n"
    else:
        (tmp_path / name).write_text("import helpers\n\nhelpers.device = lambda: 'cuda'\n")
    assert finding(tmp_path, text).severity == "warning"


@pytest.mark.parametrize(
    "init", ["if model is None: return\n        undefined()", "for part in model:\n            undefined(part)"]
)
def test_an_object_that_may_well_be_made(tmp_path: Path, init: str) -> None:
    assert finding(tmp_path, OBJECT.format(init=init, inside="pass")).severity == "warning"
