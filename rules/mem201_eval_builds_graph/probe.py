"""What an evaluation that records needs at most, though it keeps nothing: `memlint verify --rules MEM201`."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import nn

CLAIMS = {"": "peak"}


def bad(device: str) -> Iterator[None]:
    """`model.eval()` and `correct += (model(x).argmax(1) == y).sum().item()`"""
    model = network(device)
    model.eval()
    correct = 0
    for x, y in batches(device):
        correct += (model(x).argmax(1) == y).sum().item()
        yield


def good(device: str) -> Iterator[None]:
    """the same under `torch.no_grad()`"""
    model = network(device)
    model.eval()
    correct = 0
    for x, y in batches(device):
        with torch.no_grad():
            correct += (model(x).argmax(1) == y).sum().item()
        yield


def network(device: str) -> nn.Module:
    layers = [layer for _ in range(12) for layer in (nn.Linear(128, 128), nn.GELU())]
    return nn.Sequential(*layers, nn.Linear(128, 10)).to(device)


def batches(device: str) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    while True:
        yield torch.randn(512, 128, device=device), torch.randint(10, (512,), device=device)
