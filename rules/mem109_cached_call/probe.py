"""What the cache of a method keeps of models that are dropped: `memlint verify --rules MEM109`."""

from __future__ import annotations

import functools
from collections.abc import Iterator

import torch
from torch import nn

CLAIMS = {"": "device"}


def bad(device: str) -> Iterator[None]:
    """`@lru_cache(None)` on a property of modules of 1 MiB, made one after the other"""

    class Layer(nn.Linear):
        @property
        @functools.lru_cache(None)  # noqa: B019
        def width(self) -> int:
            return self.weight.shape[1]

    while True:
        layer = Layer(512, 512, device=device)
        layer(torch.zeros(8, layer.width, device=device)).sum().backward()
        del layer
        yield


def good(device: str) -> Iterator[None]:
    """`@cached_property`"""

    class Layer(nn.Linear):
        @functools.cached_property
        def width(self) -> int:
            return self.weight.shape[1]

    while True:
        layer = Layer(512, 512, device=device)
        layer(torch.zeros(8, layer.width, device=device)).sum().backward()
        del layer
        yield
