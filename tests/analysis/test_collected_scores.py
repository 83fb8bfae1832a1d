"""An evaluation by its name, which returns what a model gave for all batches: who trains holds no such list."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.linting import codes_in

COLLECTED = """
import torch
from torch import nn
from torch.utils.data import DataLoader


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Linear(4096, 4096)

    def forward(self, x):
        return self.layers(x)


def {name}(model: Net, data):
    found = []
    for x, y in {batches}:
        {kept}
    return found
"""

ERRORS = "found.append((model(x.cuda()) - y.cuda()).pow(2).mean(1))"


@pytest.mark.parametrize(
    ("name", "batches", "kept", "codes"),
    [
        ("testing", "DataLoader(data)", ERRORS, ["MEM201"]),
        ("predict", "DataLoader(data)", ERRORS, ["MEM201"]),
        ("evaluate_errors", "DataLoader(data)", ERRORS, ["MEM201"]),
        (
            "validate",
            "DataLoader(data)",
            "with torch.no_grad():\n            " + ERRORS.replace(")).pow", ")).cpu().pow"),
            [],
        ),
        # names under which outputs may be what a training step goes through
        ("errors", "DataLoader(data)", ERRORS, []),
        ("sample_errors", "DataLoader(data)", ERRORS, []),
        # the last output alone
        ("predict", "DataLoader(data)", "found = model(x.cuda())", []),
    ],
)
def test_nobody_trains_by_all_batches(tmp_path: Path, name: str, batches: str, kept: str, codes: list[str]) -> None:
    source = COLLECTED.format(name=name, batches=batches, kept=kept)
    assert [code for code in codes_in(tmp_path, source) if code == "MEM201"] == codes
