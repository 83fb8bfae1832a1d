"""A place that is rebuilt on one way through a round, and cut on that same way, leads back to no earlier round."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint

LAYER = """
import torch
from torch import nn


class Multiplier(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(8, 8)
        self.register_buffer("scale", torch.zeros(8))

    def forward(self, x):
        loss = self.net(x)
        if self.training:
            self.scale = self.scale + loss.mean(0)
            {cut}
        {after}
        return loss + self.scale
"""


@pytest.mark.parametrize(
    ("cut", "after", "expected"),
    [
        ("pass", "pass", ["MEM103"]),
        ("self.scale.detach_()", "pass", []),
        ("self.scale = self.scale.detach()", "pass", []),
        ("pass", "self.scale = self.scale.detach()", []),
    ],
)
def test_a_buffer_that_training_updates(tmp_path: Path, cut: str, after: str, expected: list[str]) -> None:
    (tmp_path / "layer.py").write_text(LAYER.format(cut=cut, after=after))
    assert [found.code for found in memlint.lint(tmp_path).findings] == expected


GUARDED = """
from contextlib import contextmanager
import torch
from torch import nn


@contextmanager
def quiet():
    {guard}
        yield


@quiet()
def validate(loader, net: nn.Module):
    net.eval()
    for x, y in loader:
        print(net(x).argmax(1).eq(y).sum().item())
"""


@pytest.mark.parametrize(
    ("guard", "expected"), [("with torch.no_grad():", []), ("with torch.enable_grad():", ["MEM201"])]
)
def test_a_context_manager_that_decorates(tmp_path: Path, guard: str, expected: list[str]) -> None:
    (tmp_path / "valid.py").write_text(GUARDED.format(guard=guard))
    assert [found.code for found in memlint.lint(tmp_path).findings] == expected
