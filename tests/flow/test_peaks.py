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
        ("x = x.view(m, n)", "x = x.clamp(0, 1)", "high"),
        ("pass", "x = x + y * weights * scale", "low"),
    ],
)
def test_what_else_the_loop_needs(tmp_path: Path, before: str, update: str, confidence: str) -> None:
    (tmp_path / "run.py").write_text(LOOP.format(before=before, update=update))
    found = memlint.lint([tmp_path], select=["MEM301"], min_confidence="low").findings
    assert [one.confidence for one in found] == [confidence]
