"""What a frozen network that records adds to a training step: `memlint verify --rules MEM202`."""

from __future__ import annotations

import copy
from collections.abc import Iterator

import torch
from torch import nn

CLAIMS = {"": "peak"}


def bad(device: str) -> Iterator[None]:
    """`target(x)` in the training step of another network"""
    online = network(device)
    target = copy.deepcopy(online)
    optimizer = torch.optim.SGD(online.parameters(), lr=0.01)
    for x in inputs(device):
        wanted = target(x)
        loss = (online(x) - wanted).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield


def good(device: str) -> Iterator[None]:
    """`with torch.no_grad(): target(x)`"""
    online = network(device)
    target = copy.deepcopy(online)
    optimizer = torch.optim.SGD(online.parameters(), lr=0.01)
    for x in inputs(device):
        with torch.no_grad():
            wanted = target(x)
        loss = (online(x) - wanted).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield


def network(device: str) -> nn.Module:
    layers = [layer for _ in range(8) for layer in (nn.Linear(128, 128), nn.GELU())]
    return nn.Sequential(*layers, nn.Linear(128, 10)).to(device)


def inputs(device: str) -> Iterator[torch.Tensor]:
    while True:
        yield torch.randn(512, 128, device=device)
