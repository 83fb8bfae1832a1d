"""Tensors that are made once and filled part by part: each part brings its graph along."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint

SAMPLING = """
import torch
from torch import nn


def sample(count, size, {more}):
    model = nn.Linear(8, 8)
    model.{mode}()
    {guard}
    scores = torch.zeros(size, count, 8)
    step = torch.ones(size, 1, 8)
    for i in range(count):
        out = model(step)
        scores[:, i : i + 1, :] = {value}
        step = out.detach().round()
    {end}
"""


@pytest.mark.parametrize(
    ("mode", "guard", "value", "end", "codes"),
    [
        ("eval", "pass", "torch.sigmoid(out)", "return scores.data.cpu().numpy()", ["MEM103", "MEM201"]),
        ("eval", "pass", "torch.sigmoid(out).detach()", "return scores.data.cpu().numpy()", ["MEM201"]),
        ("eval", "torch.set_grad_enabled(False)", "out", "return scores.cpu().numpy()", []),
        ("train", "pass", "out", "scores.mean().backward()", []),
        ("train", "pass", "out", "return scores", []),
    ],
)
def test_a_tensor_filled_step_by_step(
    tmp_path: Path, mode: str, guard: str, value: str, end: str, codes: list[str]
) -> None:
    text = SAMPLING.format(more="x=None", mode=mode, guard=guard, value=value, end=end)
    (tmp_path / "sample.py").write_text(text)
    assert sorted(found.code for found in memlint.lint([tmp_path]).findings) == codes
