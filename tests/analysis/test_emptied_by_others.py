"""What one method of an object keeps until another one empties it, once an epoch, is small where each part of it is."""

from __future__ import annotations

from pathlib import Path

import pytest
from networks import severities

PROGRAM = """
import pytorch_lightning as pl
import torch
import torch.nn.functional as F
from torch import nn


class Task(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.model = nn.Linear(10, 2)
        self.losses = []

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = F.cross_entropy(self.model(x), y)
        self.losses.append(loss)
        return loss
"""
EMPTIED = {
    "at the end of an epoch": """
    def on_train_epoch_end(self):
        self.losses.clear()
    """,
    "at its beginning, by a new list": """
    def on_train_epoch_start(self):
        self.losses = []
    """,
    "by a slice": """
    def on_train_epoch_end(self):
        del self.losses[:]
    """,
    "through another method": """
    def on_train_epoch_end(self):
        self._report("train")

    def _report(self, phase):
        print(phase, torch.stack(self.losses).mean())
        self.losses = []
    """,
    "by a computed name": """
    def on_train_epoch_end(self):
        self._report("losses")

    def _report(self, name):
        print(name, torch.stack(getattr(self, name)).mean())
        getattr(self, name).clear()
    """,
    "by a part of a name": """
    def on_train_epoch_end(self):
        self._report("loss")

    def _report(self, kind):
        getattr(self, f"{kind}es").clear()
    """,
    "by who calls a method": """
    def begin(self):
        self.losses = []


def fit(task, trainer, loader):
    for epoch in range(10):
        task.begin()
        trainer.fit(task, loader)
    """,
}
KEPT = {
    "nobody empties it": """
    def on_train_epoch_end(self):
        print(len(self.losses))
    """,
    "another attribute is emptied": """
    def on_train_epoch_end(self):
        self.others = []
    """,
    "before the first epoch alone": """
    def on_fit_start(self):
        self.losses = []
    """,
    "by a method that nobody calls": """
    def forget(self):
        self.losses.clear()
    """,
}


@pytest.mark.parametrize("method", EMPTIED.values(), ids=EMPTIED)
def test_losses_that_are_emptied_each_epoch_are_a_note(method: str, tmp_path: Path) -> None:
    assert severities(tmp_path, PROGRAM + method, "MEM102") == ["note"]


@pytest.mark.parametrize("method", KEPT.values(), ids=KEPT)
def test_losses_that_nothing_empties_stay_a_warning(method: str, tmp_path: Path) -> None:
    assert severities(tmp_path, PROGRAM + method, "MEM102") == ["warning"]
