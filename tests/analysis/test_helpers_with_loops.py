"""Helpers whose own loop runs the model, for callers of which some have a guard and some have none."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint

_HEAD = """\
import torch
from torch.nn.functional import cross_entropy
from torchvision.models import resnet50


"""
_RUN = """\
def run(model, loader):
    outputs = []
    for x, y in loader:
        outputs.append(model(x.cuda()))
    return torch.cat(outputs)


"""
_RUN_LIST = _RUN.replace("return torch.cat(outputs)", "return outputs")
_RUN_NUMBERS = _RUN.replace("model(x.cuda())", "model(x.cuda()).argmax(1).cpu()")
_GUARDED = """\
def validate(model, loader):
    model.eval()
    with torch.no_grad():
        return run(model, loader)


"""
_SCORE = """\
{guard}
def {name}(model, loader):
    model.eval()
    return run(model, loader)  # {name}


"""
_TRAIN = """\
def train(model, loader, optimizer):
    model.train()
    loss = sum(out.mean() for out in run(model, loader))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


"""
_MAIN = """\
def main(loader):
    model = resnet50().cuda()
    print(validate(model, loader), {calls})
"""


def _score(name: str, guard: str = "") -> str:
    return _SCORE.format(name=name, guard=guard)


def _told(folder: Path, text: str) -> list[tuple[str, str, bool]]:
    """(the call that is named, severity, whether memory is said to grow)"""
    lines = (_HEAD + text).splitlines()
    (folder / "main.py").write_text(_HEAD + text, encoding="utf-8")
    result = memlint.lint([folder], isolated=True)
    assert not result.failures
    return [
        (lines[one.line - 1].partition("# ")[2], one.severity, "grows" in one.message)
        for one in result.findings
        if one.code == "MEM201"
    ]


_ONE = _GUARDED + _score("score") + _MAIN.format(calls="score(model, loader)")
_BETWEEN = _ONE.replace("return run(model, loader)  #", "return predict(model, loader)  #").replace(
    "        return run(", "        return predict("
)
_BETWEEN = "def predict(model, loader):\n    return run(model, loader)\n\n\n" + _BETWEEN


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(_RUN + _ONE, [("score", "error", True)], id="one tensor of all"),
        pytest.param(_RUN_LIST + _ONE, [("score", "error", True)], id="the list itself"),
        pytest.param(_RUN_NUMBERS + _ONE, [("score", "warning", False)], id="numbers"),
        pytest.param(_RUN + _BETWEEN, [("score", "error", True)], id="a function between"),
        pytest.param(_RUN_LIST + _TRAIN + _ONE, [("score", "error", True)], id="a third one trains"),
        pytest.param(
            _RUN + _GUARDED + _score("a") + _score("b") + _MAIN.format(calls="a(model, loader), b(model, loader)"),
            [("a", "error", True), ("b", "error", True)],
            id="two without a guard",
        ),
    ],
)
def test_each_caller_without_a_guard_is_told_once(
    tmp_path: Path, text: str, expected: list[tuple[str, str, bool]]
) -> None:
    assert _told(tmp_path, text) == expected


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            _RUN + _GUARDED + _score("score", "@torch.no_grad()") + _MAIN.format(calls="score(model, loader)"),
            id="both have a guard",
        ),
        pytest.param(_RUN_LIST + _GUARDED + _TRAIN + _MAIN.format(calls="train(model, loader, 0)"), id="one trains"),
    ],
)
def test_callers_that_are_right(tmp_path: Path, text: str) -> None:
    assert _told(tmp_path, text) == []


def test_where_nobody_has_a_guard_the_helper_is_told_once(tmp_path: Path) -> None:
    text = _RUN + _score("validate") + _score("score") + _MAIN.format(calls="score(model, loader)")
    ((where, _, grows),) = _told(tmp_path, text)
    assert (where, grows) == ("", True)
