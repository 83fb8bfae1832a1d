"""An evaluation returns what its model gives: whether all callers cut the graph tells if one may need it."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint

SOURCE = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Conv2d(3, 64, 3)

    def forward(self, x):
        return self.layer(x)


def scores_of(model, x):
    model.eval()
    {guard}:
        scores = model(x.cuda())
    return scores, scores.argmax(1)


def decide(model, x):
    scores, best = scores_of(model, x)
    {uses}


def main(path, x):
    model = Net().cuda()
    model.load_state_dict(torch.load(path, map_location="cpu"))
    {last}
"""


def _found(folder: Path, **blanks: str) -> list[str]:
    named = {"guard": "if True", "uses": "return best.tolist()", "last": "print(decide(model, x))", **blanks}
    (folder / "apply.py").write_text(SOURCE.format(**named))
    return [item.code for item in memlint.lint([folder]).findings]


@pytest.mark.parametrize(
    "uses",
    [
        "return best.tolist(), scores.max().item()",
        "print(scores.mean().item())",
        "return [one.item() for one in scores.flatten()]",
        "return scores.detach().cpu()",
        "return scores",
    ],
)
def test_all_callers_cut(tmp_path: Path, uses: str) -> None:
    last = "print(decide(model, x).mean().item())" if uses.startswith("return scores") else "print(decide(model, x))"
    assert _found(tmp_path, uses=uses, last=last) == ["MEM201"]


@pytest.mark.parametrize(
    "blanks",
    [
        {"guard": "with torch.no_grad()"},
        {"uses": "return scores", "last": "return decide(model, x)"},
        {"uses": "scores.sum().backward(); return x.grad"},
        {"uses": "return torch.autograd.grad(scores.sum(), x)"},
        {"uses": "keep(scores); return best.tolist()"},
        {"last": "print(decide(model, x)); show(scores_of(model, x))"},
        {"last": "print(scores_of)"},
        {"uses": "model.scores = scores"},
        {"uses": "return lambda: scores"},
    ],
)
def test_some_caller_may_need_it(tmp_path: Path, blanks: dict[str, str]) -> None:
    assert _found(tmp_path, **blanks) == []


METHOD = """
import torch
from library import Attack


class Judge{base}:
    def __init__(self, path):
        self.model = torch.load(path)

    def logits(self, x):
        self.model.eval()
        return self.model(x.cuda())
    {more}

    def decide(self, x):
        return self.logits(x).argmax(1).tolist()


def main(path, x):
    judge = Judge(path)
    print(judge.decide(x))
    {last}
"""


@pytest.mark.parametrize(
    ("blanks", "found"),
    [
        ({}, ["MEM201"]),
        ({"base": "(Attack)"}, []),
        ({"more": "\n    __call__ = logits"}, []),
        ({"last": "return torch.autograd.functional.jacobian(judge.logits, x)"}, []),
        ({"last": "return torch.autograd.functional.jacobian(lambda y: judge.logits(y), x)"}, []),
    ],
)
def test_a_method_that_unknown_code_may_call(tmp_path: Path, blanks: dict[str, str], found: list[str]) -> None:
    (tmp_path / "apply.py").write_text(METHOD.format(**{"base": "", "more": "", "last": "", **blanks}))
    assert [item.code for item in memlint.lint([tmp_path]).findings] == found


PACKAGE = SOURCE.format(guard="if True", uses="return best.tolist(), scores.max().item()", last="").partition(
    "def main"
)[0]
SETUP = "from setuptools import setup\nsetup(name='applied', packages=['applied'])\n"


@pytest.mark.parametrize(("files", "safe"), [({}, True), ({"setup.py": SETUP}, False)])
def test_the_fix_of_what_other_projects_may_call(tmp_path: Path, files: dict[str, str], safe: bool) -> None:
    (tmp_path / "applied").mkdir()
    calls = "from applied.core import Net, decide\n\n\ndef main(x):\n    print(decide(Net(), x))\n"
    program = {"applied/__init__.py": "", "applied/core.py": PACKAGE, "applied/__main__.py": calls + "\n\nmain(0)\n"}
    for name, content in (program | files).items():
        (tmp_path / name).write_text(content)
    fixes = [item.fix for item in memlint.lint([tmp_path]).findings if item.code == "MEM201"]
    assert [fix is not None and fix.safety == "safe" for fix in fixes] == [safe]
