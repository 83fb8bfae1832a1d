"""Which members of what is stored are cut."""

from __future__ import annotations

from pathlib import Path

import pytest
from fixed_programs import findings

PAIRS = """
import torch
from torch import nn

def augmented(samples, network: nn.Module):
    network.eval()
    pairs = []
    for sample in samples:
        pairs.append({stored})
    return pairs

def tasks(shots):
    for number, shot in enumerate(shots):
        yield shot, number

def main(shots):
    network = nn.Linear(4, 4)
    for image, label in augmented(list(tasks(shots)), network):
        print(image.shape, label + 1)
"""


@pytest.mark.parametrize(
    "stored", ["(network(sample[0]).squeeze(), sample[1])", '{"x": network(sample[0]), "y": sample[1]}']
)
def test_what_comes_in_beside_a_graph_may_be_a_number(stored: str, tmp_path: Path) -> None:
    text = PAIRS.format(stored=stored)
    (found,) = findings(tmp_path, text, "MEM102")
    assert found.fix is not None and found.fix.title == "detach `network(sample[0]).squeeze()`"
