"""What an evaluation needs whose guard has no effect: `memlint verify --rules MEM203`."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import nn

CLAIMS = {"": "peak"}


def bad(device: str) -> Iterator[None]:
    """`torch.no_grad()` as a statement of its own"""
    model = network(device)
    model.eval()
    torch.no_grad()
    correct = 0
    for x, y in batches(device):
        correct += (model(x).argmax(1) == y).sum().item()
        yield


def good(device: str) -> Iterator[None]:
    """`with torch.no_grad():` around the evaluation"""
    model = network(device)
    model.eval()
    correct = 0
    with torch.no_grad():
        for x, y in batches(device):
            correct += (model(x).argmax(1) == y).sum().item()
            yield


def network(device: str) -> nn.Module:
    layers = [layer for _ in range(12) for layer in (nn.Linear(128, 128), nn.GELU())]
    return nn.Sequential(*layers, nn.Linear(128, 10)).to(device)


def batches(device: str) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    while True:
        yield torch.randn(512, 128, device=device), torch.randint(10, (512,), device=device)
