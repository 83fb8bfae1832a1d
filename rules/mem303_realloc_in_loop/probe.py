"""How long it takes to make a tensor again, or elsewhere than where it is needed: `memlint verify --rules MEM303`."""

from __future__ import annotations

from collections.abc import Iterator

import torch

CLAIMS = {"": "time", "moved": "time"}
#: what costs nothing where the host is the device
ACCELERATOR_ONLY = ("moved",)


def bad(device: str) -> Iterator[None]:
    """`weights = torch.linspace(0, 1, size, device=device)` in each iteration"""
    x = torch.randn(size(device), device=device)
    while True:
        weights = torch.linspace(0, 1, size(device), device=device)
        x.dot(weights)
        yield


def good(device: str) -> Iterator[None]:
    """the same before the loop"""
    x = torch.randn(size(device), device=device)
    weights = torch.linspace(0, 1, size(device), device=device)
    while True:
        x.dot(weights)
        yield


def bad_moved(device: str) -> Iterator[None]:
    """`torch.zeros(size).to(device)`"""
    while True:
        noise = torch.zeros(size(device)).to(device)
        noise.sum()
        yield


def good_moved(device: str) -> Iterator[None]:
    """`torch.zeros(size, device=device)`"""
    while True:
        noise = torch.zeros(size(device), device=device)
        noise.sum()
        yield


def size(device: str) -> int:
    """So many numbers that filling them takes an accelerator longer than being told to."""
    return 4 << 20 if device == "cpu" else 64 << 20
