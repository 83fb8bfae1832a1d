"""A method that only a module's forward calls runs under whatever grad mode the forward's caller has."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint

NET = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.front = nn.Linear(8, 8)
        self.back = nn.Linear(8, 2)

    def forward(self, x):
        if self.training:
            return self.back(self.front(x))
        return self._inference(x)

    def _inference(self, x):
        scores = self.back(self.front(x))
        for row in scores:
            print(row.sum().item())
        return None
{more}
"""

CALLED = """
    def infer_all(self, batches):
        self.eval()
        for x in batches:
            self._inference(x)
"""


@pytest.mark.parametrize(("more", "codes"), [("", set()), (CALLED, {"MEM201"})])
def test_a_part_of_a_forward(tmp_path: Path, more: str, codes: set[str]) -> None:
    (tmp_path / "net.py").write_text(NET.format(more=more))
    assert {found.code for found in memlint.lint([tmp_path]).findings} == codes
