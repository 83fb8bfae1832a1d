"""What `itertools.cycle` keeps of the batches of a loader, an iteration each: `memlint verify --rules MEM107`.

The data set lies on the device, so that its batches are counted there.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import torch
from torch.utils.data import DataLoader, TensorDataset

CLAIMS = {"": "device"}


def bad(device: str) -> Iterator[None]:
    """`itertools.cycle(loader)`"""
    loader = batches(device)
    for (x,) in itertools.cycle(loader):
        x.square().mean()
        yield


def good(device: str) -> Iterator[None]:
    """a generator that goes through the loader again"""
    for x in forever(batches(device)):
        x.square().mean()
        yield


def forever(loader: DataLoader[tuple[torch.Tensor, ...]]) -> Iterator[torch.Tensor]:
    while True:
        for (x,) in loader:
            yield x


def batches(device: str) -> DataLoader[tuple[torch.Tensor, ...]]:
    rows = torch.randn(64 * 64, 256, device=device)
    return DataLoader(TensorDataset(rows), batch_size=64)
