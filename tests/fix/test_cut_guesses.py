"""A sum of what unknown code gives is cut safely only where a use tells that it is a tensor."""

from __future__ import annotations

from pathlib import Path

import pytest
from fixed_programs import safety

SUMS = """
import torch
from torch import nn
from elsewhere import LOSSES

class Trainer:
    def __init__(self, model, optimizer, name):
        self.model, self.optimizer = model, optimizer
        self.criterion = {criterion}

    def epoch(self, loader, train):
        total = 0.0
        for x, y in loader:
            loss = self.criterion(self.model(x), y)
            {step}
            total += {added}
        {end}

def main(loader):
    model = nn.Linear(4, 4)
    trainer = Trainer(model, torch.optim.SGD(model.parameters(), 0.1), "ce")
    trainer.epoch(loader, True)
    trainer.epoch(loader, False)

main([])
"""
TRAINS = "self.optimizer.zero_grad(); loss.backward(); self.optimizer.step()"
SOMETIMES = "if train:\n                " + TRAINS
SCALED = "torch.amp.GradScaler().scale(loss).backward()"


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ({}, "unsafe"),
        ({"added": "loss / 2"}, "unsafe"),
        ({"criterion": "nn.MSELoss()"}, "safe"),
        ({"step": TRAINS}, "safe"),
        ({"step": TRAINS, "added": "loss / 2"}, "safe"),
        ({"step": SCALED}, "safe"),
        ({"step": SOMETIMES + "\n            print(loss.item())"}, "safe"),
        ({"end": "print(total.item())"}, "safe"),
        ({"end": "return total.data / 2"}, "safe"),
        ({"end": "if train:\n            print(total.item())"}, "unsafe"),
    ],
)
def test_a_loss_that_only_its_name_tells_of(parts: dict[str, str], expected: str, tmp_path: Path) -> None:
    """What a table of losses gives when nothing is trained may be a number, which has no ``detach()``."""
    plain = {"criterion": "LOSSES[name]", "step": SOMETIMES, "added": "loss", "end": "print(total)"}
    assert safety(tmp_path, SUMS.format(**plain | parts), "MEM101") == expected
