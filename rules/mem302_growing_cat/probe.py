"""What it needs to grow a tensor onto itself (a whole collection an iteration): `memlint verify --rules MEM302`."""

from __future__ import annotations

from collections.abc import Iterator

import torch

CLAIMS = {"": "peak"}
PARTS, ROWS, COLUMNS = 32, 64, 256


def bad(device: str) -> Iterator[None]:
    """`result = torch.cat([result, part])`, 32 parts"""
    while True:
        result = torch.empty(0, COLUMNS, device=device)
        for _ in range(PARTS):
            part = torch.randn(ROWS, COLUMNS, device=device)
            result = torch.cat([result, part])
        del part, result
        yield


def good(device: str) -> Iterator[None]:
    """written into a tensor of the final size"""
    while True:
        result = torch.empty(PARTS * ROWS, COLUMNS, device=device)
        for number in range(PARTS):
            part = torch.randn(ROWS, COLUMNS, device=device)
            result[number * ROWS : (number + 1) * ROWS] = part
        del part, result
        yield
