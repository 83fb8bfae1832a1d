"""What is stored under a key is as large as what was put there, whatever the key is called."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from networks import severities

IMPORTS = """
import torch
from torch.utils.data import DataLoader, Dataset, TensorDataset
import numpy as np
import library
"""
#: holds the parts of the last batch, and shows them by other names
HOLDER = """
class Holder:
    def __init__(self, net):
        self.net = net
        self.inputs = None
        self.wanted = None

    def take(self, data):
        {unpacked}
        self.inputs, self.wanted = pictures.to("cuda"), labels.to("cuda")

    def shown(self):
        return {{"given": self.inputs, "target_out": self.wanted}}


def run(dataset, net):
    holder, kept = Holder(net), []
    for data in DataLoader(dataset, batch_size=64):
        holder.take(data)
        kept.append(holder.shown()["{key}"])
    return torch.cat(kept)
"""
STEP = """
def step(batch):
    x, label = batch
    x, label = x.cuda(), label.cuda()
    return {{"input": x, "truth": label, "best": x.flatten(1).argmax(1), "count": len(label)}}


def run(dataset):
    kept = []
    for batch in DataLoader(dataset, batch_size=64):
        out = step(batch)
        kept.append(out["{key}"])
    return kept
"""
UNPACKED = "pictures, labels = data"
BY_NUMBER = "pictures = data[0]\n        labels = data[2]"
SMALL = {
    "labels that an object holds": HOLDER.format(unpacked=UNPACKED, key="target_out"),
    "labels by their position": HOLDER.format(unpacked=BY_NUMBER, key="target_out"),
    "labels that a function gives": STEP.format(key="truth"),
    "indices that a function gives": STEP.format(key="best"),
}
LARGE = {
    "pictures that an object holds": HOLDER.format(unpacked=UNPACKED, key="given"),
    "pictures that a function gives": STEP.format(key="input"),
}


@pytest.mark.parametrize("text", SMALL.values(), ids=SMALL)
def test_what_is_small_is_no_warning_by_its_key(text: str, tmp_path: Path) -> None:
    assert "warning" not in severities(tmp_path, IMPORTS + textwrap.dedent(text), "MEM104")


@pytest.mark.parametrize("text", LARGE.values(), ids=LARGE)
def test_what_is_large_stays_a_warning_by_its_key(text: str, tmp_path: Path) -> None:
    assert severities(tmp_path, IMPORTS + textwrap.dedent(text), "MEM104") == ["warning"]
