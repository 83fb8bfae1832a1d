"""What an optimizer or a loss keeps of a model whose name is deleted: `memlint verify --rules MEM110`."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import nn

CLAIMS = {"": "peak", "graph": "peak"}


def bad(device: str) -> Iterator[None]:
    """`del model`, while `optimizer` holds the parameters, gradients and its own state, and another model trains"""
    while True:
        model = network().to(device)
        optimizer = torch.optim.Adam(model.parameters())
        train(model, optimizer, device)
        del model
        torch.cuda.empty_cache()
        other = network().to(device)
        train(other, torch.optim.Adam(other.parameters()), device)
        del other
        yield


def good(device: str) -> Iterator[None]:
    """`del model, optimizer`"""
    while True:
        model = network().to(device)
        optimizer = torch.optim.Adam(model.parameters())
        train(model, optimizer, device)
        del model, optimizer
        torch.cuda.empty_cache()
        other = network().to(device)
        train(other, torch.optim.Adam(other.parameters()), device)
        del other
        yield


def bad_graph(device: str) -> Iterator[None]:
    """`del model`, while the graph of `loss`, freed by backward, leads to the parameters, and another model trains"""
    while True:
        model = network().to(device)
        loss = model(torch.randn(8, 512, device=device)).square().mean()
        loss.backward()
        del model
        torch.cuda.empty_cache()
        other = network().to(device)
        train(other, torch.optim.Adam(other.parameters()), device)
        del other
        yield


def good_graph(device: str) -> Iterator[None]:
    """`del model, loss`"""
    while True:
        model = network().to(device)
        loss = model(torch.randn(8, 512, device=device)).square().mean()
        loss.backward()
        del model, loss
        torch.cuda.empty_cache()
        other = network().to(device)
        train(other, torch.optim.Adam(other.parameters()), device)
        del other
        yield


def train(model: nn.Module, optimizer: torch.optim.Optimizer, device: str) -> None:
    optimizer.zero_grad()
    model(torch.randn(8, 512, device=device)).square().mean().backward()
    optimizer.step()


def network() -> nn.Module:
    return nn.Sequential(*[nn.Linear(512, 512) for _ in range(8)])
