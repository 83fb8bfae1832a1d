"""What a framework keeps of each step until the end of an epoch: losses are one number each, predictions are not."""

from __future__ import annotations

from pathlib import Path

import pytest
from linting import codes_in

PROGRAM = """
import torch
from pytorch_lightning import LightningModule
from transformers import AutoModelForMaskedLM
from somewhere import Criterion


class Task(LightningModule):
    def __init__(self, name):
        super().__init__()
        self.model = AutoModelForMaskedLM.from_pretrained(name)
        self.criterion = Criterion()

    def forward(self, ids=None, labels=None):
        return self.model(input_ids=ids, labels=labels)[0]

    def {phase}_step(self, batch, batch_idx):
        {body}

    def {phase}_epoch_end(self, outputs):
        self.history = outputs
"""


@pytest.mark.parametrize(
    ("phase", "body", "found"),
    [
        ("training", "self.criterion(batch)\n        return {'loss': batch['loss']}", False),
        ("training", "self.criterion(batch)\n        return batch['objective']", False),
        ("training", "out = self.model(**batch)\n        return {'loss': out[0], 'log': {'loss': out.loss}}", False),
        ("training", "out = self.model(**batch)\n        return {'loss': out[0], 'scores': out.logits}", True),
        ("validation", "loss = self(**batch)\n        return {'val_loss': loss.detach(), 'log': {'l': loss}}", False),
        ("validation", "val_loss = self.model(**batch).loss\n        return val_loss", False),
        ("validation", "loss, logits = self.model(**batch)[:2]\n        return {'loss': loss}", False),
        ("validation", "return {'logits': self.model(**batch).logits}", True),
        ("validation", "out = self.model(**batch)\n        return {'loss': out.loss, 'logits': out.logits}", True),
    ],
)
def test_a_loss_is_one_number(tmp_path: Path, phase: str, body: str, found: bool) -> None:
    codes = codes_in(tmp_path, PROGRAM.replace("{phase}", phase).replace("{body}", body))
    assert ("MEM104" in codes) is found
