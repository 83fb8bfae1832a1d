"""Updates in place that lower the peak of their loop, and those beside something that needs as much."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint

LOOP = """
import torch


def turned(x):
    return torch.flip(x, [0])


@torch.no_grad()
def run(model, weights, steps, n, m, scale):
    x = torch.randn(n, m, device="cuda")
    y = torch.randn(n, m, device="cuda")
    for _ in range(steps):
        {before}
        {update}
    return x.sum().item()
"""


@pytest.mark.parametrize(
    ("before", "update", "confidence"),
    [
        ("pass", "x = x + y", "high"),
        ("pass", "x = x + 0.5 * y", "high"),
        ("pass", "x = x * 0.9 + y", "high"),
        ("y = model(weights)", "x = x + y", "high"),
        ("y = model(x)", "x = x + y", "low"),
        ("x = weights @ x", "x = x / x.norm()", "low"),
        ("x = torch.roll(x, 1)", "x = x * 0.5", "low"),
        ("x = turned(x)", "x = x.clamp(0, 1)", "low"),
        ("y = 0.5 * x - scale * y", "x = x + y", "low"),
        ("y = 0.5 * y - scale * y", "x = x + y", "high"),
        ("y = 0.5 * x", "x = x + y", "high"),
        ("x = x.view(m, n)", "x = x.clamp(0, 1)", "high"),
        ("pass", "x = x + y * weights * scale", "low"),
    ],
)
def test_what_else_the_loop_needs(tmp_path: Path, before: str, update: str, confidence: str) -> None:
    (tmp_path / "run.py").write_text(LOOP.format(before=before, update=update))
    found = memlint.lint([tmp_path], select=["MEM301"], min_confidence="low").findings
    assert [one.confidence for one in found] == [confidence]


LAYERS = """
import torch
from torch import nn


class Policy:
    def __init__(self):
        self.net = nn.Sequential(nn.Linear(8, 512), nn.ReLU(), nn.Linear(512, 4)).cuda()

    def score(self, x):
        return {score}

    {guard}
    def run(self, x, steps, n, m):
        total = torch.zeros(n, m, device="cuda")
        for step in range(steps):
            got = self.score(x)
            total = total + got
        return total.sum().item()
"""


@pytest.mark.parametrize(
    ("score", "guard", "confidence"),
    [("self.net(x).softmax(-1)", "@torch.no_grad()", "low"), ("x[0]", "@torch.no_grad()", "high")],
)
def test_layers_that_a_method_runs(tmp_path: Path, score: str, guard: str, confidence: str) -> None:
    (tmp_path / "run.py").write_text(LAYERS.format(score=score, guard=guard))
    found = memlint.lint([tmp_path], select=["MEM301"], min_confidence="low").findings
    assert [one.confidence for one in found] == [confidence]
