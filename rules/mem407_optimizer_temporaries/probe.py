"""What a step of Adam takes beside parameters, gradients and its two states: `memlint verify --rules MEM407`."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import nn

CLAIMS = {"": "peak", "loop": "peak"}


def bad(device: str) -> Iterator[None]:
    """`Adam(params, foreach=True)`, which an accelerator has by default"""
    model = network(device)
    return steps(model, torch.optim.Adam(model.parameters(), foreach=True), device)


def good(device: str) -> Iterator[None]:
    """`Adam(params, fused=True)`"""
    model = network(device)
    return steps(model, torch.optim.Adam(model.parameters(), fused=True), device)


def bad_loop(device: str) -> Iterator[None]:
    """`AdamW(params, foreach=True)`, which an accelerator has by default"""
    model = network(device)
    return steps(model, torch.optim.AdamW(model.parameters(), foreach=True), device)


def good_loop(device: str) -> Iterator[None]:
    """`AdamW(params, foreach=False)`"""
    model = network(device)
    return steps(model, torch.optim.AdamW(model.parameters(), foreach=False), device)


def network(device: str) -> nn.Module:
    return nn.Sequential(*[nn.Linear(512, 512) for _ in range(64)]).to(device)


def steps(model: nn.Module, optimizer: torch.optim.Optimizer, device: str) -> Iterator[None]:
    x = torch.randn(4, 512, device=device)
    while True:
        model(x).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        yield
