"""What a state keeps that is computed from its own previous value: `memlint verify --rules MEM103`."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import nn

CLAIMS = {"": "device", "average": "host"}


def bad(device: str) -> Iterator[None]:
    """`hidden = cell(x, hidden)`, no backward"""
    cell = nn.GRUCell(512, 512).to(device)
    hidden = torch.zeros(64, 512, device=device)
    for x in inputs(device):
        hidden = cell(x, hidden)
        yield


def good(device: str) -> Iterator[None]:
    """`hidden = cell(x, hidden).detach()`"""
    cell = nn.GRUCell(512, 512).to(device)
    hidden = torch.zeros(64, 512, device=device)
    for x in inputs(device):
        hidden = cell(x, hidden).detach()
        yield


def bad_average(device: str) -> Iterator[None]:
    """`mean = 0.9 * mean + 0.1 * loss` after `loss.backward()`"""
    model = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 1)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    mean = torch.zeros((), device=device)
    for x in inputs(device):
        out = model(x)
        loss = out.square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        mean = 0.9 * mean + 0.1 * loss
        yield


def good_average(device: str) -> Iterator[None]:
    """`mean = 0.9 * mean + 0.1 * loss.detach()`"""
    model = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 1)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    mean = torch.zeros((), device=device)
    for x in inputs(device):
        out = model(x)
        loss = out.square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        mean = 0.9 * mean + 0.1 * loss.detach()
        yield


def inputs(device: str) -> Iterator[torch.Tensor]:
    while True:
        yield torch.randn(64, 512, device=device)
