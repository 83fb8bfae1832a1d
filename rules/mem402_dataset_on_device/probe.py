"""What a data set needs beside a training step: `memlint verify --rules MEM402`."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

CLAIMS = {"": "peak"}
#: on the host, both are the same
ACCELERATOR_ONLY = ("",)


class Images(Dataset[torch.Tensor]):
    def __init__(self, images: torch.Tensor) -> None:
        self.images = images

    def __getitem__(self, index: int) -> torch.Tensor:
        return self.images[index]

    def __len__(self) -> int:
        return len(self.images)


def bad(device: str) -> Iterator[None]:
    """64 MiB of images on the device"""

    class Resident(Images):
        def __init__(self, images: torch.Tensor) -> None:
            self.images = images.to(device)

    yield from train(Resident(images()), device)


def good(device: str) -> Iterator[None]:
    """the same on the host, and each batch moved"""
    yield from train(Images(images()), device)


def train(data: Dataset[torch.Tensor], device: str) -> Iterator[None]:
    model = nn.Sequential(nn.Conv2d(1, 8, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 1)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    while True:
        for batch in DataLoader(data, batch_size=32):
            loss = model(batch.to(device)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            yield


def images() -> torch.Tensor:
    return torch.zeros(4096, 1, 64, 64)
