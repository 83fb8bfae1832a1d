"""A network runs for what its hooks collect or for its statistics, and its output is dropped: no gradient is needed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.linting import codes_in

COLLECTS = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Conv2d(3, 64, 3)
        self.norm = nn.BatchNorm2d(64)

    def forward(self, x):
        return self.norm(self.layer(x))


def collect(model, loader, optimizer=None):
    found = {{}}
    {before}
    for {each} in loader:
        {guard}:
            {run}
        {after}
    return found


def main(loader: torch.utils.data.DataLoader):
    model = Net().cuda()
    print(collect(model, loader))
"""


def _source(**blanks: str) -> str:
    named = {"before": "pass", "each": "x", "guard": "if True", "run": "_ = model(x.cuda())", "after": "pass"}
    return COLLECTS.format(**{**named, **blanks})


@pytest.mark.parametrize(
    "blanks",
    [
        {},
        {"run": "model(x.cuda())"},
        {"each": "x, _"},
        {"before": "model.train()"},
        {"before": "for _ in range(3): found.clear()"},
        {"after": "_, found['last'] = 0, 1"},
    ],
)
def test_an_output_that_is_dropped(tmp_path: Path, blanks: dict[str, str]) -> None:
    assert codes_in(tmp_path, _source(**blanks)) == ["MEM201"]
    assert codes_in(tmp_path, _source(**blanks, guard="with torch.no_grad()")) == []


@pytest.mark.parametrize(
    "blanks",
    [
        {"after": "_.sum().backward()"},
        {"after": "show(_)"},
        {"after": "found[len(found)] = [_.shape]; keep(lambda: _)"},
        {"run": "_ = model(x.cuda()).sum().backward()"},
        {
            "before": "model.layer.register_forward_hook(lambda layer, given, out: found.update(loss=out.mean()))",
            "after": "optimizer.zero_grad(); found['loss'].backward(); optimizer.step()",
        },
    ],
)
def test_an_output_that_is_used(tmp_path: Path, blanks: dict[str, str]) -> None:
    assert codes_in(tmp_path, _source(**blanks)) == []
