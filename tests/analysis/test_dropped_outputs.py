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


HOOKED = """
import torch
from transformers import AutoModel


class Collector:
    def __init__(self, model):
        self.model, self.found = model, []
        model.register_forward_hook(self.keep)

    def keep(self, module, args, out):
        self.found.append(out.last_hidden_state{kept})

    def collect(self, loader):
        for x in loader:
            {run}


def main(loader, optimizer):
    collector = Collector(AutoModel.from_pretrained("some/bert").cuda())
    {before}
    collector.collect(loader)
    {after}
"""
TRAINS = "torch.cat(collector.found).mean().backward(); optimizer.step()"


@pytest.mark.parametrize("run", ["_ = self.model(x.cuda())", "self.model(x.cuda())"])
@pytest.mark.parametrize(
    ("blanks", "found"),
    [
        ({"after": "torch.save(collector.found, 'found.pt')", "kept": ".detach()"}, ["MEM201"]),
        ({"before": "optimizer.get().backward()", "kept": ".detach()"}, ["MEM201"]),
        ({"after": TRAINS}, []),
    ],
)
def test_what_hooks_collect_for_a_caller_that_trains(
    tmp_path: Path, run: str, blanks: dict[str, str], found: list[str]
) -> None:
    source = HOOKED.format(**{"before": "pass", "after": "pass", "kept": "", "run": run, **blanks})
    assert codes_in(tmp_path, source) == found
