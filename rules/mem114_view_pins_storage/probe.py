"""What collected views keep (a pass over 16 batches an iteration): `memlint verify --rules MEM114`."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import nn

CLAIMS = {"": "peak", "detached": "peak"}


def bad(device: str) -> Iterator[None]:
    """`kept.append(states[:, -1, :])`, of 64 positions, under no_grad"""
    encode = encoder(device)
    while True:
        kept = []
        for x in batches(device):
            with torch.no_grad():
                states = encode(x)
            kept.append(states[:, -1, :])
        yield


def good(device: str) -> Iterator[None]:
    """`kept.append(states[:, -1, :].clone())`"""
    encode = encoder(device)
    while True:
        kept = []
        for x in batches(device):
            with torch.no_grad():
                states = encode(x)
            kept.append(states[:, -1, :].clone())
        yield


def bad_detached(device: str) -> Iterator[None]:
    """`kept.append(states[:, -1, :].detach())`, beside a step of training"""
    encode = encoder(device)
    optimizer = torch.optim.SGD(encode.parameters(), lr=1e-3)
    while True:
        kept = []
        for x in batches(device):
            states = encode(x)
            optimizer.zero_grad()
            states.square().mean().backward()
            optimizer.step()
            kept.append(states[:, -1, :].detach())
        yield


def good_detached(device: str) -> Iterator[None]:
    """`kept.append(states[:, -1, :].detach().clone())`"""
    encode = encoder(device)
    optimizer = torch.optim.SGD(encode.parameters(), lr=1e-3)
    while True:
        kept = []
        for x in batches(device):
            states = encode(x)
            optimizer.zero_grad()
            states.square().mean().backward()
            optimizer.step()
            kept.append(states[:, -1, :].detach().clone())
        yield


def encoder(device: str) -> nn.Module:
    return nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 64)).to(device)


def batches(device: str) -> Iterator[torch.Tensor]:
    for _ in range(16):
        yield torch.randn(32, 64, 64, device=device)
