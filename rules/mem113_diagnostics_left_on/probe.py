"""What diagnostics cost that are left on: `memlint verify --rules MEM113`."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import nn

CLAIMS = {"": "time", "state": "device"}


def bad(device: str) -> Iterator[None]:
    """training under `torch.autograd.set_detect_anomaly(True)`"""
    model, optimizer = network(device)
    for x in batches(device):
        with torch.autograd.set_detect_anomaly(True):
            loss = model(x).square().mean()
            optimizer.zero_grad()
            loss.backward()
        optimizer.step()
        yield


def good(device: str) -> Iterator[None]:
    """the same without it"""
    model, optimizer = network(device)
    for x in batches(device):
        with torch.autograd.set_detect_anomaly(False):
            loss = model(x).square().mean()
            optimizer.zero_grad()
            loss.backward()
        optimizer.step()
        yield


class Curve(nn.Module):
    """A metric whose state is all that it was given, as that of torchmetrics' AUROC is."""

    def __init__(self) -> None:
        super().__init__()
        self.preds: list[torch.Tensor] = []

    def update(self, preds: torch.Tensor) -> None:
        self.preds.append(preds.detach())

    def reset(self) -> None:
        self.preds.clear()


def bad_state(device: str) -> Iterator[None]:
    """a metric with the state of AUROC, updated with 4,096 scores of 64 classes in each epoch, and never reset"""
    metric = Curve()
    while True:
        metric.update(torch.rand(4096, 64, device=device))
        yield


def good_state(device: str) -> Iterator[None]:
    """the same, reset in each epoch"""
    metric = Curve()
    while True:
        metric.reset()
        metric.update(torch.rand(4096, 64, device=device))
        yield


def batches(device: str) -> Iterator[torch.Tensor]:
    while True:
        yield torch.randn(16, 64, device=device)


def network(device: str) -> tuple[nn.Module, torch.optim.Optimizer]:
    layers = [layer for _ in range(16) for layer in (nn.Linear(64, 64), nn.GELU())]
    model = nn.Sequential(*layers).to(device)
    return model, torch.optim.SGD(model.parameters(), lr=0.01)
