"""How long it takes to make a tensor again, or elsewhere than where it is needed: `memlint verify --rules MEM303`."""

from __future__ import annotations

from collections.abc import Iterator

import torch

CLAIMS = {"": "time", "moved": "time"}
#: what costs nothing where the host is the device
ACCELERATOR_ONLY = ("moved",)
SIZE = 4 << 20


def bad(device: str) -> Iterator[None]:
    """`weights = torch.linspace(0, 1, size, device=device)` in each iteration"""
    x = torch.randn(SIZE, device=device)
    while True:
        weights = torch.linspace(0, 1, SIZE, device=device)
        x.dot(weights)
        yield


def good(device: str) -> Iterator[None]:
    """the same before the loop"""
    x = torch.randn(SIZE, device=device)
    weights = torch.linspace(0, 1, SIZE, device=device)
    while True:
        x.dot(weights)
        yield


def bad_moved(device: str) -> Iterator[None]:
    """`torch.zeros(size).to(device)`"""
    while True:
        noise = torch.zeros(SIZE).to(device)
        noise.sum()
        yield


def good_moved(device: str) -> Iterator[None]:
    """`torch.zeros(size, device=device)`"""
    while True:
        noise = torch.zeros(SIZE, device=device)
        noise.sum()
        yield
