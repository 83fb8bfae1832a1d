"""A backward that goes through one network alone is for its gradients, though no optimizer steps it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.linting import codes_in

SOURCE = """
import torch
from torch import nn


class Scorer(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Conv2d(3, 512, 3)
        self.head = nn.Linear(512, 1)

    def forward(self, x):
        return self.head(self.body(x).mean((2, 3))).squeeze(-1)


def run(loader):
    model, trained = Scorer().cuda(), Scorer().cuda()
    for x, y in loader:
        x = x.cuda()
        out = model(x)
        loss = {loss}
        loss.backward()
        {then}
    optimizer = torch.optim.SGD(trained.parameters(), lr=0.1)
    trained(x).sum().backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({"loss": "out.mean()", "then": "model.zero_grad()"}, id="a benchmark"),
        pytest.param({"loss": "nn.functional.mse_loss(out, y.cuda())", "then": "pass"}, id="a loss with labels"),
        pytest.param({"loss": "(out * 2).sum() + out.mean()", "then": "pass"}, id="two terms of one output"),
    ],
)
def test_its_gradients_are_wanted(tmp_path: Path, parts: dict[str, str]) -> None:
    assert codes_in(tmp_path, SOURCE.format(**parts)) == []


def test_beside_a_network_that_learns_nobody_wants_them(tmp_path: Path) -> None:
    loss = "nn.functional.mse_loss(trained(x), out)"
    assert codes_in(tmp_path, SOURCE.format(loss=loss, then="pass")) == ["MEM202"]
