"""States that the members of a container keep, and that a loop over all of them resets before each sequence. Beside it,
the same network that resets none, or the members of another container."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.linting import codes_in

SPIKING = """
import torch
from torch import nn


class Neuron(nn.Module):
    def __init__(self):
        super().__init__()
        self.v = None

    def forward(self, x):
        if self.v is None:
            self.v = torch.zeros_like(x)
        self.v = self.v + x
        return self.v

    def reset_state(self):
        self.v = None


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(8, 8)
        self.layers = nn.ModuleList([nn.Linear(8, 8), nn.Linear(8, 8)])
        self.neurons = nn.ModuleList([Neuron(), Neuron()])
        self.others = nn.ModuleList([Neuron(), Neuron()])

    def forward(self, x):
        {reset}
        for t in range(x.shape[1]):
            h = self.encoder(x[:, t, :])
            for layer, neuron in zip(self.layers, self.neurons):
                h = layer(neuron(h))
        return h
"""


@pytest.mark.parametrize(
    ("reset", "found"),
    [
        ("for neuron in self.neurons: neuron.reset_state()", False),
        ("for one in self.neurons: one.v = None", False),
        ("pass", True),
        ("for neuron in self.others: neuron.reset_state()", True),
    ],
)
def test_a_loop_that_resets_all_members(tmp_path: Path, reset: str, found: bool) -> None:
    assert ("MEM103" in codes_in(tmp_path, SPIKING.format(reset=reset))) == found
