"""Losses that are summed over several rounds of a loop, some of which run the backward: accumulation by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint

PROGRAM = """
import torch
import torch.nn.functional as F
from torch import nn


def train(model: nn.Module, head: nn.Module, loader, optimizer, criterion, every):
    total, count, losses, features = 0.0, 0, [], []
    last = None
    for index, (x, y) in enumerate(loader):
        count += 1
        {body}
        if {test}:
            optimizer.zero_grad()
            {flush}
            optimizer.step()
            {reset}
"""

ADD = "total = total + criterion(model(x.cuda()), y.cuda())"
COLLECT = "losses.append(criterion(model(x.cuda()), y.cuda()))"
SAMPLES = "losses.append(F.cross_entropy(model(x.cuda()), y.cuda(), reduction='none'))"
EVERY = "(index + 1) % every == 0"
BACKWARD = "total.backward()"
BEGIN = "total, count = 0.0, 0"


def found(tmp_path: Path, body: str, test: str, flush: str, reset: str) -> list[str]:
    """The lines where MEM304 reports something, or a rule that advises to detach the losses."""
    (tmp_path / "pyproject.toml").touch()
    source = PROGRAM.format(
        body=body.replace("\n", "\n        "), test=test, flush=flush.replace("\n", "\n            "), reset=reset
    )
    (tmp_path / "train.py").write_text(source)
    result = memlint.lint([tmp_path], isolated=True, preview=True)
    assert not result.failures
    lines = source.splitlines()
    codes = ("MEM101", "MEM102", "MEM304")
    return [f"{each.code} {lines[each.line - 1].strip()}" for each in result.findings if each.code in codes]


@pytest.mark.parametrize(
    ("body", "test", "flush", "reset"),
    [
        (ADD, EVERY, BACKWARD, BEGIN),
        (ADD, "not (index + 1) % every", "(total / every).backward()", "total = torch.zeros((), device='cuda')"),
        (ADD, "count == every", BACKWARD, BEGIN),
        (ADD, "count >= every or index == len(loader) - 1", BACKWARD, BEGIN),
        (ADD, "every <= count", BACKWARD, BEGIN),
        (COLLECT, "len(losses) == every", "torch.stack(losses).mean().backward()", "losses = []"),
        (COLLECT, "len(losses) >= every", "sum(losses).backward()", "losses.clear()"),
        (SAMPLES, EVERY, "torch.cat(losses).mean().backward()", "losses = []"),
    ],
)
def test_a_backward_for_several_rounds(tmp_path: Path, body: str, test: str, flush: str, reset: str) -> None:
    assert found(tmp_path, body, test, flush, reset) == [f"MEM304 {body}"]


@pytest.mark.parametrize(
    ("body", "test", "flush", "reset"),
    [
        pytest.param(ADD, "torch.isfinite(total)", BACKWARD, BEGIN, id="may run in each round"),
        pytest.param(ADD, "index % 100 != 0", BACKWARD, BEGIN, id="in most rounds"),
        pytest.param(ADD, "'%d' % index in model.wanted", BACKWARD, BEGIN, id="no remainder"),
        pytest.param(ADD, "count > every", BACKWARD, "total = 0.0", id="in each round behind the first ones"),
        pytest.param(ADD, "count < every", BACKWARD, BEGIN, id="in each of the first rounds"),
        pytest.param(COLLECT, "len(losses) > 0", "sum(losses).backward()", "losses.clear()", id="if there are losses"),
        pytest.param(ADD, "(index + 1) % 2 == 0", BACKWARD, BEGIN, id="few rounds"),
        pytest.param(ADD, EVERY, "(total ** 2).backward()", BEGIN, id="not linear"),
        pytest.param(ADD, EVERY, "total.backward(create_graph=True)", BEGIN, id="its gradients are wanted"),
        pytest.param(COLLECT, EVERY, "torch.stack(losses).max().backward()", "losses = []", id="the worst loss"),
        pytest.param(
            "loss = criterion(model(x.cuda()), y.cuda())\nloss.backward()\ntotal += loss.item()",
            EVERY,
            "print(total / every)",
            BEGIN,
            id="a backward in each round",
        ),
        pytest.param("total = criterion(model(x.cuda()), y.cuda())", EVERY, BACKWARD, BEGIN, id="one loss in several"),
        pytest.param(
            "feature = model(x.cuda())\nfeatures.append(feature)\ntotal = total + criterion(head(feature), y.cuda())",
            EVERY,
            "loss = total + torch.cat(features).var(0).sum()\nloss.backward()",
            "total, features = 0.0, []",
            id="features that the loss compares",
        ),
        pytest.param(
            "out = model(x.cuda())\nif last is not None:\n    total = total + criterion(out, last)\nlast = out",
            EVERY,
            BACKWARD,
            "total, last = 0.0, None",
            id="pairs of rounds",
        ),
        pytest.param(
            "last = head(x.cuda(), last)\ntotal = total + criterion(model(last), y.cuda())",
            EVERY,
            BACKWARD,
            "total, last = 0.0, last.detach()",
            id="steps of one sequence",
        ),
    ],
)
def test_a_backward_that_needs_all_rounds(tmp_path: Path, body: str, test: str, flush: str, reset: str) -> None:
    assert found(tmp_path, body, test, flush, reset) == []
