"""How long training takes that empties the cache in each step: `memlint verify --rules MEM305`."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import nn

CLAIMS = {"": "time"}
#: the host has no cache to empty
ACCELERATOR_ONLY = ("",)


def bad(device: str) -> Iterator[None]:
    """`torch.cuda.empty_cache()` in each training step"""
    model, optimizer = network(device)
    while True:
        loss = model(torch.randn(8192, 512, device=device)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        torch.cuda.empty_cache()
        yield


def good(device: str) -> Iterator[None]:
    """the same without it"""
    model, optimizer = network(device)
    while True:
        loss = model(torch.randn(8192, 512, device=device)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield


def network(device: str) -> tuple[nn.Module, torch.optim.Optimizer]:
    layers = [layer for _ in range(12) for layer in (nn.Linear(512, 512), nn.GELU())]
    model = nn.Sequential(*layers).to(device)
    return model, torch.optim.SGD(model.parameters(), lr=0.01)
