"""A loop over a network's layers has a layer: what it gives is what the last layer gives, and not what went in."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint
from tests.linting import severities_in

SOURCE = """
import torch
from torch import nn


class Chain(nn.{base}):
    {init}

    def forward(self, pair):
        {loop}
        return pair


def validate(loader, device):
    model = Chain([nn.Linear(3, 3)]).to(device)
    squared = nn.MSELoss(reduction="sum")
    total = 0.0
    for batch in loader:
        {guard}
        _, out = model((batch["kind"].to(device), batch["x"].to(device)))
        total += squared(out, batch["y"].to(device)).item()
    return total
"""
LAYERS = "def __init__(self, parts):\n        super().__init__()\n        self.parts = nn.ModuleList(parts)"
NUMBERS = "def __init__(self, parts):\n        super().__init__()\n        self.parts = [len(parts)]"


@pytest.mark.parametrize(
    ("base", "init", "loop", "guard", "found"),
    [
        ("ModuleList", "", "for part in self: pair = part(pair)", "", True),
        ("Module", LAYERS, "for part in self.parts: pair = part(pair)", "", True),
        ("Module", LAYERS, "for at, part in enumerate(self.parts): pair = part(pair)", "", True),
        # guarded
        ("ModuleList", "", "for part in self: pair = part(pair)", "torch.set_grad_enabled(False)", False),
        # no layer: what went in comes out
        ("Module", NUMBERS, "for part in self.parts: print(part)", "", False),
    ],
)
def test_loop_over_layers(tmp_path: Path, base: str, init: str, loop: str, guard: str, *, found: bool) -> None:
    source = SOURCE.format(base=base, init=init, loop=loop, guard=guard)
    assert bool(severities_in(tmp_path, source, "MEM201")) is found


def test_code_after_a_loop_over_layers_that_returns(tmp_path: Path) -> None:
    """A search among the parts of a network may find none: the code after it runs."""
    source = """
import torch
from torch import nn


def first_convolution(net: nn.Module):
    for part in net.modules():
        if isinstance(part, nn.Conv2d):
            return part
    return None


def losses_of(model: nn.Module, loader):
    for part in model.children():
        return []
    kept = []
    for x, y in loader:
        loss = (model(x.cuda()) - y.cuda()).square().mean()
        loss.backward()
        kept.append(loss)  # here
    return kept
"""
    (tmp_path / "train.py").write_text(source)
    result = memlint.lint([tmp_path])
    here = 1 + source.splitlines().index("        kept.append(loss)  # here")
    assert [(item.code, item.line) for item in result.findings] == [("MEM102", here)]
