"""What loading a checkpoint needs beside the model (each iteration loads it): `memlint verify --rules MEM404`."""

from __future__ import annotations

import io
from collections.abc import Iterator

import torch
from torch import nn

CLAIMS = {"": "peak"}
#: what is saved from the host comes back there
ACCELERATOR_ONLY = ("",)


def bad(device: str) -> Iterator[None]:
    """`model.load_state_dict(torch.load(path))`"""
    model = network(device)
    checkpoint = saved(model)
    while True:
        checkpoint.seek(0)
        model.load_state_dict(torch.load(checkpoint))
        yield


def good(device: str) -> Iterator[None]:
    """`model.load_state_dict(torch.load(path, map_location="cpu"))`"""
    model = network(device)
    checkpoint = saved(model)
    while True:
        checkpoint.seek(0)
        model.load_state_dict(torch.load(checkpoint, map_location="cpu"))
        yield


def saved(model: nn.Module) -> io.BytesIO:
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    return file


def network(device: str) -> nn.Module:
    return nn.Sequential(*[nn.Linear(1024, 1024) for _ in range(8)]).to(device)
