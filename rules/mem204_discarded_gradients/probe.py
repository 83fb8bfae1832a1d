"""What a discriminator's step needs while its backward runs through the generator: `memlint verify --rules MEM204`."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import nn

CLAIMS = {"": "peak", "kept": "peak"}
BATCH = 512


def bad(device: str) -> Iterator[None]:
    """`d(g(z))` in the discriminator's step"""
    g, d = network(128, device), network(1, device)
    opt_g = torch.optim.SGD(g.parameters(), lr=1e-3)
    opt_d = torch.optim.SGD(d.parameters(), lr=1e-3)
    for x in inputs(device):
        fake = g(torch.randn(BATCH, 128, device=device))
        loss_d = d(fake).mean() - d(x).mean()
        opt_d.zero_grad()
        loss_d.backward()
        opt_d.step()
        loss_g = -d(g(torch.randn(BATCH, 128, device=device))).mean()
        opt_g.zero_grad()
        loss_g.backward()
        opt_g.step()
        yield


def good(device: str) -> Iterator[None]:
    """`g(z)` under `torch.no_grad()` there"""
    g, d = network(128, device), network(1, device)
    opt_g = torch.optim.SGD(g.parameters(), lr=1e-3)
    opt_d = torch.optim.SGD(d.parameters(), lr=1e-3)
    for x in inputs(device):
        with torch.no_grad():
            fake = g(torch.randn(BATCH, 128, device=device))
        loss_d = d(fake).mean() - d(x).mean()
        opt_d.zero_grad()
        loss_d.backward()
        opt_d.step()
        loss_g = -d(g(torch.randn(BATCH, 128, device=device))).mean()
        opt_g.zero_grad()
        loss_g.backward()
        opt_g.step()
        yield


def bad_kept(device: str) -> Iterator[None]:
    """`d(fake)`, and `backward(retain_graph=True)` as the generator's step uses `fake` again"""
    g, d = network(128, device), network(1, device)
    opt_g = torch.optim.SGD(g.parameters(), lr=1e-3)
    opt_d = torch.optim.SGD(d.parameters(), lr=1e-3)
    for x in inputs(device):
        fake = g(torch.randn(BATCH, 128, device=device))
        loss_d = d(fake).mean() - d(x).mean()
        opt_d.zero_grad()
        loss_d.backward(retain_graph=True)
        opt_d.step()
        loss_g = -d(fake).mean()
        opt_g.zero_grad()
        loss_g.backward()
        opt_g.step()
        yield


def good_kept(device: str) -> Iterator[None]:
    """`d(fake.detach())`, and `backward()`"""
    g, d = network(128, device), network(1, device)
    opt_g = torch.optim.SGD(g.parameters(), lr=1e-3)
    opt_d = torch.optim.SGD(d.parameters(), lr=1e-3)
    for x in inputs(device):
        fake = g(torch.randn(BATCH, 128, device=device))
        loss_d = d(fake.detach()).mean() - d(x).mean()
        opt_d.zero_grad()
        loss_d.backward()
        opt_d.step()
        loss_g = -d(fake).mean()
        opt_g.zero_grad()
        loss_g.backward()
        opt_g.step()
        yield


def network(outputs: int, device: str) -> nn.Module:
    layers = [layer for _ in range(8) for layer in (nn.Linear(128, 128), nn.GELU())]
    return nn.Sequential(*layers, nn.Linear(128, outputs)).to(device)


def inputs(device: str) -> Iterator[torch.Tensor]:
    while True:
        yield torch.randn(BATCH, 128, device=device)
