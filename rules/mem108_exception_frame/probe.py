"""What a retry inside `except` needs, and one after it (each iteration fails once): `memlint verify --rules MEM108`.

The model says itself that the memory does not suffice, so that the device need not be filled.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import nn

CLAIMS = {"": "peak"}
FITS = 1024


def bad(device: str) -> Iterator[None]:
    """the halves of the batch inside `except`"""
    model = Network().to(device)
    batch = torch.randn(2 * FITS, 128, device=device)
    while True:
        try:
            loss = model(batch).square().mean()
            loss.backward()
        except torch.OutOfMemoryError:
            for half in batch.chunk(2):
                loss = model(half).square().mean()
                loss.backward()
        yield


def good(device: str) -> Iterator[None]:
    """the same after it"""
    model = Network().to(device)
    batch = torch.randn(2 * FITS, 128, device=device)
    while True:
        parts = 1
        try:
            loss = model(batch).square().mean()
            loss.backward()
        except torch.OutOfMemoryError:
            parts = 2
        if parts > 1:
            for part in batch.chunk(parts):
                loss = model(part).square().mean()
                loss.backward()
        yield


class Network(nn.Module):
    """16 layers, of which the last has memory for few rows."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(128, 128) for _ in range(16)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = torch.nn.functional.gelu(layer(x))
        if len(x) > FITS:
            raise torch.OutOfMemoryError("out of memory")
        return x
