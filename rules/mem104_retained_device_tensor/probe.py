"""What collected outputs and batches keep on the device: `memlint verify --rules MEM104`."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import torch
from torch import nn

CLAIMS = {"": "device", "row": "device", "batches": "device"}


def bad(device: str) -> Iterator[None]:
    """`outputs.append(model(x))` under `no_grad`"""
    model = nn.Linear(256, 1000).to(device).eval()
    outputs = []
    with torch.no_grad():
        for x, _ in batches(device):
            outputs.append(model(x))
            yield


def good(device: str) -> Iterator[None]:
    """`correct += (model(x).argmax(1) == y).sum()`"""
    model = nn.Linear(256, 1000).to(device).eval()
    correct = torch.zeros((), device=device)
    with torch.no_grad():
        for x, y in batches(device):
            correct += (model(x).argmax(1) == y).sum()
            yield


def bad_row(device: str) -> Iterator[None]:
    """`first.append(x[0])`: a row pins the whole batch"""
    first = []
    for x, _ in batches(device):
        first.append(x[0])
        yield


def good_row(device: str) -> Iterator[None]:
    """`first.append(x[0].tolist())`"""
    first = []
    for x, _ in batches(device):
        first.append(x[0].tolist())
        yield


def bad_batches(device: str) -> Iterator[None]:
    """`itertools.cycle(loader)` keeps every batch of its first round"""
    for x, _ in itertools.cycle(batches(device)):
        x.sum()
        yield


def good_batches(device: str) -> Iterator[None]:
    """the loader is gone through anew"""
    while True:
        for x, _ in batches(device):
            x.sum()
            yield


def batches(device: str) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    for _ in range(1000):
        yield torch.randn(256, 256, device=device), torch.randint(10, (256,), device=device)
