"""Containers that keep a window over the last rounds, in whatever way they are cut back."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint

FORWARD = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 8)
        self.kept = []

    def forward(self, x, wide=False):
        new = self.layer(x)
        {before}
        self.kept.append(new)
        {after}
        return new


class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = Net()

    def forward(self, x):
        return self.net(x)
"""


@pytest.mark.parametrize(
    ("before", "after", "codes"),
    [
        ("self.kept = self.kept[1:]", "pass", []),
        ("self.kept = self.kept[2:] if wide else self.kept", "pass", ["MEM102"]),
        ("pass", "self.kept = self.kept[-100:]", []),
        ("pass", "if len(self.kept) > 100: self.kept = self.kept[-100:]", []),
        ("pass", "if len(self.kept) > 100: self.kept.pop(0)", []),
        ("pass", "if len(self.kept) > 100: del self.kept[0]", []),
        ("pass", "if len(self.kept) > 100: del self.kept[:50]", []),
        ("pass", "self.kept = self.kept[:]", ["MEM102"]),
        ("pass", "other = self.kept[1:]", ["MEM102"]),
    ],
)
def test_a_window(tmp_path: Path, before: str, after: str, codes: list[str]) -> None:
    (tmp_path / "net.py").write_text(FORWARD.format(before=before, after=after))
    assert [found.code for found in memlint.lint([tmp_path]).findings] == codes


EVALUATION = """
import torch


@torch.no_grad()
def collect(model, loader):
    model.eval()
    kept = []
    for x in loader:
        result = model.test_step(x.cuda())
        kept.append({value})
    return kept
"""


@pytest.mark.parametrize(
    ("value", "codes"), [("result", ["MEM104"]), ("result.packed()", []), ("result.get(0)", ["MEM104"])]
)
def test_what_a_method_of_an_output_gives_is_where_it_likes(tmp_path: Path, value: str, codes: list[str]) -> None:
    (tmp_path / "run.py").write_text(EVALUATION.format(value=value))
    assert [found.code for found in memlint.lint([tmp_path]).findings] == codes
