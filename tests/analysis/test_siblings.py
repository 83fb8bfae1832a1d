"""Evaluations that only their name tells, of a model that a function beside them trains."""

from __future__ import annotations

from pathlib import Path

import pytest
from linting import codes_in

TRAINER = """
import torch
from torch.utils.data import DataLoader
from library import build, metrics


class Trainer:
    def __init__(self, net, train_data: DataLoader, val_data: DataLoader):
        self.net = net.cuda()
        self.other = build()
        self.optimizer = torch.optim.Adam(self.net.parameters())
        self.train_data, self.val_data = train_data, val_data
        self.metrics = metrics()
        self.last = None

    def run_epoch(self):
        for x, y in self.train_data:
            loss = self.metrics.loss({trained}(x.cuda()), y.cuda())
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()

    def {name}(self):
        for x, y in {data}:
            out = self.net(x.cuda())
            score = self.metrics.score(out, y.cuda())
            {use}

    def run(self):
        for epoch in range(10):
            self.run_epoch()
            self.{name}()


Trainer(build(), DataLoader([]), DataLoader([])).run()
"""


@pytest.mark.parametrize(
    ("trained", "name", "data", "use", "found"),
    [
        pytest.param("self.net", "validate", "self.val_data", "print(score.item())", ["MEM201"], id="it is trained"),
        pytest.param("self.other", "validate", "self.val_data", "print(score.item())", [], id="another one is"),
        pytest.param("self.net", "refine", "self.val_data", "print(score.item())", [], id="who knows what it does"),
        pytest.param("self.net", "validate", "self.val_data", "return out", [], id="somebody gets what it gives"),
        pytest.param("self.net", "validate", "self.val_data", "self.last = out", [], id="it is kept"),
        pytest.param("self.net", "validate", "self.val_data", "score.backward()", [], id="it is differentiated"),
        pytest.param("self.net", "validate", "[(1, 2)]", "print(score.item())", [], id="no data"),
    ],
)
def test_an_evaluation_beside_the_training(
    tmp_path: Path, trained: str, name: str, data: str, use: str, found: list[str]
) -> None:
    assert codes_in(tmp_path, TRAINER.format(trained=trained, name=name, data=data, use=use)) == found
