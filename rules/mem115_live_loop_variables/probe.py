"""What two graphs at once need, of which one is of a round without a backward: `memlint verify --rules MEM115`."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import nn

CLAIMS = {"": "peak"}


def bad(device: str) -> Iterator[None]:
    """each second batch is skipped when its loss is there"""
    model = network(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for step, x in enumerate(batches(device)):
        loss = model(x).square().mean()
        if step % 2 == 0:
            yield
            continue
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield


def good(device: str) -> Iterator[None]:
    """the same, with `del loss` before the next"""
    model = network(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for step, x in enumerate(batches(device)):
        loss = model(x).square().mean()
        if step % 2 == 0:
            del loss
            yield
            continue
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield


def network(device: str) -> nn.Module:
    layers = [layer for _ in range(12) for layer in (nn.Linear(64, 64), nn.GELU())]
    return nn.Sequential(*layers).to(device)


def batches(device: str) -> Iterator[torch.Tensor]:
    while True:
        yield torch.randn(4096, 64, device=device)
