"""What a whole data set as one batch needs (a pass over it an iteration): `memlint verify --rules MEM401`."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

CLAIMS = {"": "peak"}


def bad(device: str) -> Iterator[None]:
    """`batch_size=len(dataset)`, of 2,048 samples"""
    dataset = TensorDataset(torch.randn(2048, 64))
    return epochs(device, DataLoader(dataset, batch_size=len(dataset)))


def good(device: str) -> Iterator[None]:
    """`batch_size=128`"""
    dataset = TensorDataset(torch.randn(2048, 64))
    return epochs(device, DataLoader(dataset, batch_size=128))


def epochs(device: str, loader: DataLoader[tuple[torch.Tensor, ...]]) -> Iterator[None]:
    model = nn.Sequential(*[layer for _ in range(8) for layer in (nn.Linear(64, 64), nn.GELU())]).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    while True:
        for (x,) in loader:
            loss = model(x.to(device)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        yield
