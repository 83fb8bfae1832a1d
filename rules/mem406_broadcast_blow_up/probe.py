"""What a square of the batch takes where a number for each sample was meant: `memlint verify --rules MEM406`."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import nn

CLAIMS = {"": "peak", "by_hand": "peak"}


def bad(device: str) -> Iterator[None]:
    """`nn.functional.mse_loss(model(x), y)` of shapes [2048, 1] and [2048]"""
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1)).to(device)
    x, y = torch.randn(2048, 64, device=device), torch.randn(2048, device=device)
    while True:
        loss = nn.functional.mse_loss(model(x), y)
        model.zero_grad()
        loss.backward()
        yield


def good(device: str) -> Iterator[None]:
    """`nn.functional.mse_loss(model(x).squeeze(-1), y)`"""
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1)).to(device)
    x, y = torch.randn(2048, 64, device=device), torch.randn(2048, device=device)
    while True:
        loss = nn.functional.mse_loss(model(x).squeeze(-1), y)
        model.zero_grad()
        loss.backward()
        yield


def bad_by_hand(device: str) -> Iterator[None]:
    """`((model(x) - y) ** 2).mean()`"""
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1)).to(device)
    x, y = torch.randn(2048, 64, device=device), torch.randn(2048, device=device)
    while True:
        loss = ((model(x) - y) ** 2).mean()
        model.zero_grad()
        loss.backward()
        yield


def good_by_hand(device: str) -> Iterator[None]:
    """`((model(x) - y.unsqueeze(-1)) ** 2).mean()`"""
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1)).to(device)
    x, y = torch.randn(2048, 64, device=device), torch.randn(2048, device=device)
    while True:
        loss = ((model(x) - y.unsqueeze(-1)) ** 2).mean()
        model.zero_grad()
        loss.backward()
        yield
