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
