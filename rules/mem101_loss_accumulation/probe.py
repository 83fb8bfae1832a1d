"""What a running sum of attached losses keeps: `memlint verify --rules MEM101`."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import nn

CLAIMS = {"": "device", "after_backward": "host"}


def bad(device: str) -> Iterator[None]:
    """`total += loss` in an evaluation that records"""
    model, criterion = network(device).eval(), nn.CrossEntropyLoss()
    total = torch.zeros((), device=device)
    for x, y in batches(device):
        loss = criterion(model(x), y)
        total = total + loss
        yield


def good(device: str) -> Iterator[None]:
    """the same under `torch.no_grad()`"""
    model, criterion = network(device).eval(), nn.CrossEntropyLoss()
    total = torch.zeros((), device=device)
    for x, y in batches(device):
        with torch.no_grad():
            loss = criterion(model(x), y)
        total = total + loss
        yield


def bad_after_backward(device: str) -> Iterator[None]:
    """`total += loss` after `loss.backward()`"""
    model, criterion = network(device), nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    total = torch.zeros((), device=device)
    for x, y in batches(device):
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss
        yield


def good_after_backward(device: str) -> Iterator[None]:
    """`total += loss.detach()`"""
    model, criterion = network(device), nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    total = torch.zeros((), device=device)
    for x, y in batches(device):
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.detach()
        yield


def network(device: str) -> nn.Module:
    layers = [layer for _ in range(10) for layer in (nn.Linear(256, 256), nn.ReLU())]
    return nn.Sequential(*layers, nn.Linear(256, 10)).to(device)


def batches(device: str) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    while True:
        yield torch.randn(64, 256, device=device), torch.randint(10, (64,), device=device)
