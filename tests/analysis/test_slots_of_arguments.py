"""What a callee writes into a tensor that it is given goes no further than that tensor."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.linting import codes_in

CODE = """
import torch
from torch import nn


class Cell(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def forward(self, x, states, rows):
        out = self.layer(x)
        states{slot} = out
        return out


def evaluate(loader):
    model = Cell().cuda()
    total = 0.0
    for x, y, rows in loader:
        states = {made}
        out = model(x.cuda(), states, rows)
        total += (out - y.cuda()).abs().mean().item()
    return total
"""


@pytest.mark.parametrize(
    ("slot", "made", "expected"),
    [
        ("[rows]", "torch.zeros(4, 8).cuda()", ["MEM201"]),
        (".rows", "torch.zeros(4, 8).cuda()", ["MEM201"]),
        ("[rows]", "loader.states", []),
    ],
)
def test_a_slot_of_a_tensor(tmp_path: Path, slot: str, made: str, expected: list[str]) -> None:
    assert codes_in(tmp_path, CODE.format(slot=slot, made=made)) == expected
