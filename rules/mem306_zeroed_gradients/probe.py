"""What training needs at once where gradients are zeroed: `memlint verify --rules MEM306`."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import nn

CLAIMS = {"": "peak", "by_hand": "peak"}


def bad(device: str) -> Iterator[None]:
    """`optimizer.zero_grad(set_to_none=False)`"""
    model, optimizer = network(device)
    while True:
        optimizer.zero_grad(set_to_none=False)
        loss = model(torch.ones(512, 512, device=device)).square().mean()
        loss.backward()
        optimizer.step()
        yield


def good(device: str) -> Iterator[None]:
    """`optimizer.zero_grad()`"""
    model, optimizer = network(device)
    while True:
        optimizer.zero_grad()
        loss = model(torch.ones(512, 512, device=device)).square().mean()
        loss.backward()
        optimizer.step()
        yield


def bad_by_hand(device: str) -> Iterator[None]:
    """`parameter.grad.zero_()` of each parameter"""
    model, optimizer = network(device)
    while True:
        for parameter in model.parameters():
            if parameter.grad is not None:
                parameter.grad.zero_()
        loss = model(torch.ones(512, 512, device=device)).square().mean()
        loss.backward()
        optimizer.step()
        yield


def good_by_hand(device: str) -> Iterator[None]:
    """`model.zero_grad()`"""
    model, optimizer = network(device)
    while True:
        model.zero_grad()
        loss = model(torch.ones(512, 512, device=device)).square().mean()
        loss.backward()
        optimizer.step()
        yield


def network(device: str) -> tuple[nn.Module, torch.optim.Optimizer]:
    layers = [layer for _ in range(8) for layer in (nn.Linear(512, 512), nn.ReLU())]
    model = nn.Sequential(*layers).to(device)
    return model, torch.optim.SGD(model.parameters(), lr=0.01)
