"""Networks whose parameters a caller makes trainable: that is no request for gradients of what the callee is given."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.linting import codes_in

UNFREEZES = """
import torch
from torch import nn


def distil(teacher: nn.Module, student: nn.Module, loader, optimizer, criterion, inputs=None):
    teacher.eval()
    for x, y in loader:
        known = teacher(x.cuda()).detach()
        optimizer.zero_grad()
        criterion(student(x.cuda()), known).backward()
        optimizer.step()


def main(teacher: nn.Module, student: nn.Module, loader, inputs):
    optimizer = torch.optim.Adam(student.parameters())
    {unfrozen}
    distil(teacher, student, loader, optimizer, nn.MSELoss(), inputs)
"""


@pytest.mark.parametrize(
    ("unfrozen", "found"),
    [
        ("for p in student.parameters(): p.requires_grad = True", ["MEM201"]),
        ("for name, p in student.named_parameters(): p.requires_grad = True", ["MEM201"]),
        ("for x in inputs: x.requires_grad = True", []),
        ("inputs.requires_grad = True", []),
    ],
)
def test_parameters_of_networks_are_no_inputs(tmp_path: Path, unfrozen: str, found: list[str]) -> None:
    assert codes_in(tmp_path, UNFREEZES.format(unfrozen=unfrozen)) == found
