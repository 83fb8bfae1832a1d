"""What stored tensors keep together with their graphs: `memlint verify --rules MEM102`."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import nn

CLAIMS = {"": "device", "after_backward": "host"}


def bad(device: str) -> Iterator[None]:
    """`scores.append(out.mean())` in an evaluation that records"""
    model = network(device).eval()
    scores = []
    for x, _ in batches(device):
        out = model(x)
        scores.append(out.mean())
        yield


def good(device: str) -> Iterator[None]:
    """`scores.append(out.mean().item())`"""
    model = network(device).eval()
    scores = []
    for x, _ in batches(device):
        out = model(x)
        scores.append(out.mean().item())
        yield


def bad_after_backward(device: str) -> Iterator[None]:
    """`losses.append(loss)` after `loss.backward()`"""
    model, criterion = network(device), nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    losses = []
    for x, y in batches(device):
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss)
        yield


def good_after_backward(device: str) -> Iterator[None]:
    """`losses.append(loss.detach())`"""
    model, criterion = network(device), nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    losses = []
    for x, y in batches(device):
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
        yield


def network(device: str) -> nn.Module:
    layers = [layer for _ in range(10) for layer in (nn.Linear(256, 256), nn.ReLU())]
    return nn.Sequential(*layers, nn.Linear(256, 10)).to(device)


def batches(device: str) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    while True:
        yield torch.randn(64, 256, device=device), torch.randint(10, (64,), device=device)
