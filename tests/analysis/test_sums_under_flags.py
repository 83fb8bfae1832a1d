"""Sums over the rounds of a loop in which a flag says whether a backward runs: none goes through what is freed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.linting import codes_in

EPOCH = """
import torch
from torch import nn
from somewhere import combine


def epoch(model: nn.Module, loader, optimizer, step, validate=False):
    total = 0.0
    for i, x in enumerate(loader):
        if validate:
            with torch.no_grad():
                batch = model(x.cuda()).sum()
        else:
            batch = model(x.cuda()).sum()
        total = total + batch
        loss = combine(batch, total)
        {backward}
    print(total)


def main(model, loader):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(100):
        epoch(model, loader, optimizer, 4)
        epoch(model, loader, optimizer, 4, validate=True)


main(nn.Linear(3, 4).cuda(), torch.utils.data.DataLoader(range(9)))
"""


@pytest.mark.parametrize("test", ["not validate", "validate is False", "not validate and optimizer is not None"])
def test_a_backward_in_every_round_goes_through_no_sum(tmp_path: Path, test: str) -> None:
    source = EPOCH.format(backward=f"if {test}:\n            loss.backward()\n            optimizer.step()")
    assert codes_in(tmp_path, source) == ["MEM101"]


@pytest.mark.parametrize(
    "backward",
    [
        # every so many rounds: it may be the sum that is differentiated, and begun anew in a way that is not seen
        "if i % step == 0 and not validate:\n            loss.backward()\n            optimizer.step()",
        "if not validate:\n            loss.backward(retain_graph=True)\n            optimizer.step()",
        "if not validate:\n            loss.backward()\n            break",
        "if step.due(i):\n            loss.backward()\n            total = total.detach()",
    ],
)
def test_a_sum_that_a_backward_may_go_through(tmp_path: Path, backward: str) -> None:
    assert "MEM101" not in codes_in(tmp_path, EPOCH.format(backward=backward))
