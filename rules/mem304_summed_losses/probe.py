"""What one backward for 8 micro-batches needs (all of them an iteration): `memlint verify --rules MEM304`."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import nn

CLAIMS = {"": "peak"}


def bad(device: str) -> Iterator[None]:
    """the losses of 8 micro-batches are summed, one `backward()`"""
    model = network(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    while True:
        optimizer.zero_grad()
        total = torch.zeros((), device=device)
        for x in micro_batches(device):
            total = total + model(x).square().mean()
        total.backward()
        optimizer.step()
        yield


def good(device: str) -> Iterator[None]:
    """`backward()` for each"""
    model = network(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    while True:
        optimizer.zero_grad()
        for x in micro_batches(device):
            loss = model(x).square().mean()
            loss.backward()
        optimizer.step()
        yield


def network(device: str) -> nn.Module:
    return nn.Sequential(*[layer for _ in range(8) for layer in (nn.Linear(128, 128), nn.GELU())]).to(device)


def micro_batches(device: str) -> Iterator[torch.Tensor]:
    for _ in range(8):
        yield torch.randn(64, 128, device=device)
