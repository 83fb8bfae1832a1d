"""What training needs at once where gradients are zeroed: `memlint verify --rules MEM306`."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import nn

CLAIMS = {"": "peak", "by_hand": "peak"}
SIZE = 1 << 18


def bad(device: str) -> Iterator[None]:
    """`optimizer.zero_grad(set_to_none=False)`"""
    model, optimizer = network(device)
    while True:
        optimizer.zero_grad(set_to_none=False)
        loss = model(torch.ones(2, SIZE, device=device)).square().mean()
        loss.backward()
        optimizer.step()
        yield


def good(device: str) -> Iterator[None]:
    """`optimizer.zero_grad()`"""
    model, optimizer = network(device)
    while True:
        optimizer.zero_grad()
        loss = model(torch.ones(2, SIZE, device=device)).square().mean()
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
        loss = model(torch.ones(2, SIZE, device=device)).square().mean()
        loss.backward()
        optimizer.step()
        yield


def good_by_hand(device: str) -> Iterator[None]:
    """`model.zero_grad()`"""
    model, optimizer = network(device)
    while True:
        model.zero_grad()
        loss = model(torch.ones(2, SIZE, device=device)).square().mean()
        loss.backward()
        optimizer.step()
        yield


def network(device: str) -> tuple[nn.Module, torch.optim.Optimizer]:
    # (no matrix products, whose workspace would be most of so small a peak)
    model = nn.Sequential(*[nn.LayerNorm(SIZE) for _ in range(8)]).to(device)
    return model, torch.optim.SGD(model.parameters(), lr=0.01)
