"""Which members of what is stored are cut."""

from __future__ import annotations

from pathlib import Path

import pytest
from fixed_programs import findings

PAIRS = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        return torch.relu(self.layer(x))

def augmented(samples, network: Net):
    network.eval()
    pairs = []
    for sample in samples:
        pairs.append({stored})
    return pairs

def tasks(shots):
    for number, shot in enumerate(shots):
        yield shot, number

def main(shots):
    network = Net()
    for image, label in augmented(list(tasks(shots)), network):
        print(image.shape, label + 1)
"""


@pytest.mark.parametrize("pair", ["({image}, {label})", '{{"image": {image}, "label": {label}}}'])
def test_what_comes_in_beside_a_graph_may_be_a_number(pair: str, tmp_path: Path) -> None:
    image = "network(sample[0]).squeeze()"
    text = PAIRS.format(stored=pair.format(image=image, label="sample[1]"))
    (found,) = findings(tmp_path, text, "MEM102")
    assert found.fix is not None and found.fix.title == f"detach `{image}`"
