"""Calls that stay unguarded on purpose, or for all that is known: another branch is guarded, forwards differentiate."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint
from memlint import Finding

CHOICE = """
import torch


def predict(net, loader, evaluate=True):
    net.eval()
    made = None
    for x in loader:
        {body}
        made = y if made is None else torch.max(made, y)
    return {given}
"""


def findings(tmp_path: Path, text: str, code: str = "MEM201") -> list[Finding]:
    (tmp_path / "run.py").write_text(text)
    result = memlint.lint([tmp_path])
    assert not result.failures
    return [one for one in result.findings if one.code == code]


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("""if evaluate:
            with torch.no_grad():
                y = net(x)
        else:
            y = net(x)""", 0),
        ("""if not evaluate:
            y = net(x)
        else:
            with torch.inference_mode():
                y = net(x)""", 0),
        ("""if x.is_cuda:
            if evaluate:
                with torch.set_grad_enabled(False):
                    y = net(x)
            else:
                y = net(x)""", 0),
        ("""if evaluate:
            with torch.no_grad():
                y = net.encode(x)
        else:
            y = net(x)""", 1),
        ("""if evaluate:
            with torch.no_grad():
                y = net(x)
        y = net(x)""", 1),
    ],
)  # fmt: skip
def test_another_branch_guards_the_same_call(tmp_path: Path, body: str, found: int) -> None:
    assert len(findings(tmp_path, CHOICE.replace("{body}", body).replace("{given}", "made"))) == found
    # where nothing leaves, nobody can want the graph
    assert findings(tmp_path, CHOICE.replace("{body}", body).replace("{given}", "made.argmax(1).tolist()"))


RETURNS = """
import torch


def answer(net, x, evaluate=True):
    net.eval()
    if evaluate:
        with torch.no_grad():
            return net(x)
    {behind}


def run(net, loader):
    for x in loader:
        print(answer(net, x, False).tolist())
"""


@pytest.mark.parametrize(("behind", "found"), [("return net(x)", 0), ("return net.head(net.body(x))", 1)])
def test_the_guarded_branch_returns(tmp_path: Path, behind: str, found: int) -> None:
    assert len(findings(tmp_path, RETURNS.replace("{behind}", behind))) == found


WORDS = """
import torch
from outside import load


def collect(loader):
    model = load().cuda()
    model.eval()
    kept = []
    with torch.no_grad():
        for x in loader:
            kept.append({given})
    return kept
"""


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("model(x.cuda())", 1),
        ("model(x.cuda())['disparity']", 1),
        ("model(x.cuda())['total_ops']", 0),
        ("model.predict(x.cuda())", 0),
        ("model.encode(x.cuda())", 1),
    ],
)
def test_what_may_be_numbers_or_words_is_no_device_tensor(tmp_path: Path, given: str, found: int) -> None:
    assert len(findings(tmp_path, WORDS.replace("{given}", given), "MEM104")) == found
