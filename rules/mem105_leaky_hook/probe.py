"""What leaky hooks keep: `memlint verify --rules MEM105`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

CLAIMS = {"": "device", "piled": "device"}


def bad(device: str) -> Iterator[None]:
    """a hook that runs `features.append(output)`, in training"""
    model, optimizer = network(device)
    features: list[torch.Tensor] = []
    model[0].register_forward_hook(lambda module, args, output: features.append(output))
    for x in batches(device):
        step(model, optimizer, x)
        yield


def good(device: str) -> Iterator[None]:
    """the same with `features.clear()` in each step"""
    model, optimizer = network(device)
    features: list[torch.Tensor] = []
    model[0].register_forward_hook(lambda module, args, output: features.append(output))
    for x in batches(device):
        features.clear()
        step(model, optimizer, x)
        yield


def bad_piled(device: str) -> Iterator[None]:
    """a helper that adds a hook to read one activation, and does not remove it"""
    model, _ = network(device)
    for x in batches(device):
        seen: list[torch.Tensor] = []
        model[0].register_forward_hook(reader(seen))
        with torch.no_grad():
            model(x)
        seen[0].mean().item()
        del seen
        yield


def good_piled(device: str) -> Iterator[None]:
    """the same with `handle.remove()`"""
    model, _ = network(device)
    for x in batches(device):
        seen: list[torch.Tensor] = []
        handle = model[0].register_forward_hook(reader(seen))
        with torch.no_grad():
            model(x)
        handle.remove()
        seen[0].mean().item()
        del seen
        yield


def reader(seen: list[torch.Tensor]) -> Any:
    def hook(module: nn.Module, args: Any, output: torch.Tensor) -> None:
        seen.append(output)

    return hook


def batches(device: str) -> Iterator[torch.Tensor]:
    while True:
        yield torch.randn(256, 1024, device=device)


def step(model: nn.Module, optimizer: torch.optim.Optimizer, x: torch.Tensor) -> None:
    loss = model(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def network(device: str) -> tuple[nn.Sequential, torch.optim.Optimizer]:
    model = nn.Sequential(nn.Linear(1024, 1024), nn.GELU(), nn.Linear(1024, 1024)).to(device)
    return model, torch.optim.SGD(model.parameters(), lr=0.01)
