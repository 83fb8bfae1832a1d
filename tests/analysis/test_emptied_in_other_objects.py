"""An attribute that code of the project empties each iteration bounds one of the same name only where both may be of
one object."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.linting import codes_in

PROGRAM = """
import pytorch_lightning as pl
import torch
from torch import nn


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(512, 512)
        self.rows = []

    def forward(self, x):
        x = self.layer(x)
        self.rows.append(x.detach())
        return x


{other}


class Net(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.first, self.second = {made}

    def training_step(self, batch, i):
        x, y = batch
        {step}
        return nn.functional.cross_entropy(self.second(self.first(x)), y)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters())
"""
REPLACED = """
class Emptied(Encoder):
    def forward(self, x):
        self.rows = []
        x = self.layer(x)
        self.rows.append(x.detach())
        return x
"""
EXTENDED = """
class Emptied(Encoder):
    def forward(self, x):
        self.rows = []
        return super().forward(x)
"""
UNRELATED = """
class Emptied(nn.Module):
    def __init__(self):
        super().__init__()
        self.rows = []

    def forward(self, x):
        self.rows = []
        self.rows.append(x.detach())
        return x
"""


@pytest.mark.parametrize(
    ("other", "made", "step", "codes"),
    [
        pytest.param(REPLACED, "Encoder(), Emptied()", "pass", ["MEM104"], id="by a subclass with its own method"),
        pytest.param(UNRELATED, "Encoder(), Emptied()", "pass", ["MEM104"], id="by another class"),
        pytest.param("", "Encoder(), Encoder()", "self.first.rows, self.second.rows = [], []", [], id="from outside"),
        pytest.param(EXTENDED, "Emptied(), Emptied()", "pass", [], id="by a subclass that calls the method"),
        pytest.param(
            UNRELATED + "\n\ndef change(net):\n    net.first = Encoder()\n",
            "Emptied(), Encoder()",
            "self.first.rows = []",
            [],
            id="from outside, of an object that other code replaces",
        ),
        pytest.param(UNRELATED, "make() or Emptied(), Encoder()", "self.first.rows = []", [], id="of one of two"),
        pytest.param("", "make(), make()", "self.first.rows = []", [], id="from outside, of an unknown class"),
    ],
)
def test_whose_attribute_is_emptied(tmp_path: Path, other: str, made: str, step: str, codes: list[str]) -> None:
    assert codes_in(tmp_path, PROGRAM.format(other=other, made=made, step=step)) == codes
