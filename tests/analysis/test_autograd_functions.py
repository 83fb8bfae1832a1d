"""Graphs that an autograd function records by itself, and differentiates in its own backward."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint

FUNCTION = """
import torch
from torch import nn


def aggregate(net: nn.Module, parts, grad):
    total = torch.zeros(3)
    for part in parts:
        part = net(part)
        if grad is not None:
            part.backward(grad)
        total = total + part
    return total


class Aggregate(torch.autograd.Function):
    @staticmethod
    def forward(ctx, net, parts):
        with torch.enable_grad():
            result = aggregate(net, parts, None)
        {keep}
        return result.detach()

    @staticmethod
    def backward(ctx, grad):
        (result,) = ctx.saved_tensors
        with torch.enable_grad():
            result.backward(grad)
        return None, None
"""


@pytest.mark.parametrize(
    ("keep", "codes"), [("ctx.save_for_backward(result)", []), ("print(result.shape)", ["MEM101"])]
)
def test_what_is_saved_for_the_own_backward(tmp_path: Path, keep: str, codes: list[str]) -> None:
    (tmp_path / "function.py").write_text(FUNCTION.format(keep=keep))
    result = memlint.lint([tmp_path])
    assert not result.failures
    assert [item.code for item in result.findings] == codes
