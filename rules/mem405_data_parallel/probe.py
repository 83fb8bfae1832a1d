"""What the first of two devices holds: `memlint verify --rules MEM405`. The second one is left out, but for what it
sends: so one device is enough to measure."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import nn
from torch.nn import functional

CLAIMS = {"": "peak"}
#: samples that one device takes, and their classes
SAMPLES, CLASSES = 512, 8192


def bad(device: str) -> Iterator[None]:
    """the first of two devices under `nn.DataParallel(model)`"""
    model = network(device)
    if device != "cpu":
        model = nn.DataParallel(model)
    while True:
        own = model(torch.randn(SAMPLES, 256, device=device))
        sent = torch.zeros_like(own)  # by the other device
        outputs = torch.cat([own, sent])
        functional.cross_entropy(outputs, torch.zeros(2 * SAMPLES, dtype=torch.long, device=device)).backward()
        yield


def good(device: str) -> Iterator[None]:
    """the first of two devices under `DistributedDataParallel`"""
    model = network(device)
    while True:
        outputs = model(torch.randn(SAMPLES, 256, device=device))
        functional.cross_entropy(outputs, torch.zeros(SAMPLES, dtype=torch.long, device=device)).backward()
        yield


def network(device: str) -> nn.Module:
    return nn.Sequential(nn.Linear(256, 256), nn.GELU(), nn.Linear(256, CLASSES)).to(device)
