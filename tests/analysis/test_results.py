"""The parts of what a call gives: a count that comes beside a loss has no graph because the loss has one."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint

TRAINER = """
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Trainer:
    def __init__(self, model: nn.Module):
        self.model = model

    def fit(self, loader, optimizer, several):
        if several:
            self.wrapped = DistributedDataParallel(self.model)
        total = 0
        for batch in loader:
            if several:
                loss, count = self.wrapped(batch)
            else:
                loss, count = self.model.loss_of(batch)
            total += {added}
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return float(total)
"""


@pytest.mark.parametrize(("added", "expected"), [("count", []), ("loss", ["MEM101"])])
def test_what_comes_beside_a_loss(tmp_path: Path, added: str, expected: list[str]) -> None:
    (tmp_path / "trainer.py").write_text(TRAINER.format(added=added))
    result = memlint.lint([tmp_path])
    assert not result.failures
    assert [found.code for found in result.findings] == expected


SOLVER = """
import torch


def collect(model, loader):
    model.eval()
    kept = []
    for x in loader:
        made = model(x.cuda())
        {block}:
            kept.append(made.{method})
    print(len(kept))
"""


@pytest.mark.parametrize(
    ("block", "method", "kept"),
    [
        ("with torch.no_grad()", "integrate(x, 3)", False),
        ("with torch.no_grad()", "get('logits')", True),
        ("if loader", "integrate(x, 3)", True),
    ],
)
def test_a_method_of_an_output_under_a_guard(tmp_path: Path, block: str, method: str, kept: bool) -> None:
    """What it computes of arguments has no graph; a member of the output keeps the one that it has."""
    (tmp_path / "trainer.py").write_text(SOLVER.format(block=block, method=method))
    result = memlint.lint([tmp_path], isolated=True)
    assert ("MEM102" in {one.code for one in result.findings}) is kept
