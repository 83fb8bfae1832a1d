"""What copies of a model keep that are put aside on the device: `memlint verify --rules MEM111`."""

from __future__ import annotations

import copy
from collections.abc import Iterator

import torch
from torch import nn

CLAIMS = {"": "device", "best": "peak"}
#: on the host, one copy takes as much as another
ACCELERATOR_ONLY = ("", "best")


def bad(device: str) -> Iterator[None]:
    """`history.append(copy.deepcopy(model.state_dict()))`, each epoch"""
    model = network().to(device)
    history = []
    for _epoch in range(1000):
        model(torch.randn(8, 512, device=device))
        history.append(copy.deepcopy(model.state_dict()))
        yield


def good(device: str) -> Iterator[None]:
    """`history.append({k: v.to("cpu", copy=True) for k, v in model.state_dict().items()})`"""
    model = network().to(device)
    history = []
    for _epoch in range(1000):
        model(torch.randn(8, 512, device=device))
        history.append({k: v.to("cpu", copy=True) for k, v in model.state_dict().items()})
        yield


def bad_best(device: str) -> Iterator[None]:
    """`best = copy.deepcopy(model.state_dict())` where the loss is lower"""
    model = network().to(device)
    lowest = float("inf")
    for epoch in range(1000):
        loss = 1 / (epoch + 1)
        if loss < lowest:
            lowest = loss
            best = copy.deepcopy(model.state_dict())
        yield
    model.load_state_dict(best)


def good_best(device: str) -> Iterator[None]:
    """`best = {k: v.to("cpu", copy=True) for k, v in model.state_dict().items()}`"""
    model = network().to(device)
    lowest = float("inf")
    for epoch in range(1000):
        loss = 1 / (epoch + 1)
        if loss < lowest:
            lowest = loss
            best = {k: v.to("cpu", copy=True) for k, v in model.state_dict().items()}
        yield
    model.load_state_dict(best)


def network() -> nn.Module:
    return nn.Sequential(*[nn.Linear(512, 512) for _ in range(8)])
