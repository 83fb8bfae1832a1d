"""What an update needs that makes a copy: `memlint verify --rules MEM301`."""

from __future__ import annotations

from collections.abc import Iterator

import torch

CLAIMS = {"": "peak", "two_operations": "peak"}
SIZE = 4 << 20


def bad(device: str) -> Iterator[None]:
    """`x = x + y`"""
    x, y = torch.zeros(SIZE, device=device), torch.randn(SIZE, device=device)
    while True:
        x = x + y
        yield


def good(device: str) -> Iterator[None]:
    """`x += y`"""
    x, y = torch.zeros(SIZE, device=device), torch.randn(SIZE, device=device)
    while True:
        x += y
        yield


def bad_two_operations(device: str) -> Iterator[None]:
    """`x = x * 0.5 + y`"""
    x, y = torch.zeros(SIZE, device=device), torch.randn(SIZE, device=device)
    while True:
        x = x * 0.5 + y
        yield


def good_two_operations(device: str) -> Iterator[None]:
    """`x.mul_(0.5).add_(y)`"""
    x, y = torch.zeros(SIZE, device=device), torch.randn(SIZE, device=device)
    while True:
        x.mul_(0.5).add_(y)
        yield
