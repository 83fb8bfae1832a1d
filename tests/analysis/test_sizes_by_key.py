"""What is stored under a key is as large as what was put there, whatever the key is called."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import pytest
from networks import severities

import memlint
from memlint.analysis.facts.sizes import known_numbers
from memlint.analysis.facts.sizes.declared_options import defaults_of

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
DATA = """
class Samples(Dataset):
    def __init__(self, paths, table):
        self.paths, self.table = paths, table

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        shown = library.decode(self.paths[index])
        picture = torch.zeros(3, 224, 224)
        picture[:, :32, :32] = shown
        row, few = torch.randn(16), torch.full((4,), index)
        return {item}


def run(paths, table, net):
    kept = []
    with torch.no_grad():
        for {target} in DataLoader(Samples(paths, table), batch_size=64):
            x = {part}.to("cuda")
            net(x)
            kept.append(x)
    return torch.cat(kept)
"""
BY_KEY = '{"a": picture, "b": row, "c": {"d": few}, "e": few, "n": 3}'
IN_ORDER = "picture, row, few, 3"
ARRAY = """
def run(table, net):
    {rows}
    kept = []
    with torch.no_grad():
        for {target} in DataLoader({data}, batch_size=64):
            x = x.to("cuda")
            net(x)
            kept.append(x)
    return torch.cat(kept)
"""
BESIDE = """
def run(dataset, net):
    kept = []
    with torch.no_grad():
        for x, other in DataLoader(dataset, batch_size=64):
            x, other = x.to("cuda"), other.to("cuda")
            kept.append({stored})
            net(x)
    return kept
"""
SMALL = {
    **{
        f"{stored}, with what comes beside the inputs": BESIDE.format(stored=stored)
        for stored in ("other", "(other, 1)", "(other, net(x))", "(net(x), other)")
    },
    **{
        f"the member {key!r} of a sample": DATA.format(item=BY_KEY, target="batch", part=f'batch["{key}"]')
        for key in ("b", "e", "n")
    },
    **{
        f"the member {at} of a sample": DATA.format(item=IN_ORDER, target="batch", part=f"batch[{at}]")
        for at in (1, 2, 3)
    },
    "an unpacked member of a sample": DATA.format(item=IN_ORDER, target="_, x, _, _", part="x"),
    "one tensor for a sample": DATA.format(item="row", target="x", part="x"),
    "rows of an array": ARRAY.format(rows="rows = table.values.astype(np.float32)", data="rows", target="x"),
    "rows of a tensor": ARRAY.format(
        rows="rows = torch.tensor(table.to_numpy())", data="TensorDataset(rows)", target="x, "
    ),
    "labels that an object holds": HOLDER.format(unpacked=UNPACKED, key="target_out"),
    "labels by their position": HOLDER.format(unpacked=BY_NUMBER, key="target_out"),
    "labels that a function gives": STEP.format(key="truth"),
    "indices that a function gives": STEP.format(key="best"),
}
LARGE = {
    **{f"{stored}, with the inputs": BESIDE.format(stored=stored) for stored in ("x", "(x, 1)", "(other, x)")},
    "pictures that an object holds": HOLDER.format(unpacked=UNPACKED, key="given"),
    "pictures that a function gives": STEP.format(key="input"),
    "a picture by its key": DATA.format(item=BY_KEY, target="batch", part='batch["a"]'),
    "a picture by its position": DATA.format(item=IN_ORDER, target="batch", part="batch[0]"),
    "an unpacked picture": DATA.format(item="row, picture", target="_, x", part="x"),
    "one picture for a sample": DATA.format(item="picture", target="x", part="x"),
    "samples of which nothing is known": DATA.format(item="library.item(shown)", target="x", part="x"),
    "pictures in an array": ARRAY.format(
        rows="rows = torch.zeros(5000, 3, 64, 64)", data="TensorDataset(rows)", target="x, "
    ),
}


@pytest.mark.parametrize("text", SMALL.values(), ids=SMALL)
def test_what_is_small_is_no_warning_by_its_key(text: str, tmp_path: Path) -> None:
    assert "warning" not in severities(tmp_path, IMPORTS + textwrap.dedent(text), "MEM104")


@pytest.mark.parametrize("text", LARGE.values(), ids=LARGE)
def test_what_is_large_stays_a_warning_by_its_key(text: str, tmp_path: Path) -> None:
    assert severities(tmp_path, IMPORTS + textwrap.dedent(text), "MEM104") == ["warning"]


READER = """
from torch import nn


class Config:
    width: int = options.width


class Net(nn.Module):
    def __init__(self, width=options.width):
        super().__init__()
        self.layer = nn.Linear(4, width)

    def forward(self, x):
        return self.layer(x)


def run(options, loader):
    given = Config(width=options.width)
    net = Net()
    net.eval()
    for x in loader:
        print(net(x).sum().item())
"""


def test_settings_that_read_each_other_are_each_looked_up_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The declarations of a setting in other places read the same setting: the look-ups were a tree of them."""
    asked: list[str] = []

    def counted(*given: Any) -> list[Any]:
        asked.append(given[1])
        return defaults_of(*given)

    monkeypatch.setattr(known_numbers, "defaults_of", counted)
    counts = []
    for at in range(4):
        (tmp_path / f"made_{at}.py").write_text(READER)
        asked.clear()
        assert not memlint.lint([tmp_path]).failures
        counts.append(len(asked))
    assert counts[0] > 0
    assert counts == [counts[0] * (at + 1) for at in range(4)]  # in each file as many, and no more
