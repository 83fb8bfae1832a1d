"""What graphs cost that a backward keeps or records for nobody: `memlint verify --rules MEM112`."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import nn

CLAIMS = {"": "peak", "gradients": "peak", "result": "peak", "rounds": "peak", "inputs": "device"}


def bad(device: str) -> Iterator[None]:
    """`loss.backward(retain_graph=True)`, the only one"""
    model = network(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    while True:
        loss = model(torch.randn(4096, 64, device=device)).square().mean()
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        optimizer.step()
        yield


def good(device: str) -> Iterator[None]:
    """`loss.backward()`"""
    model = network(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    while True:
        loss = model(torch.randn(4096, 64, device=device)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield


def bad_gradients(device: str) -> Iterator[None]:
    """`loss.backward(create_graph=True)`, and a plain optimizer"""
    model = network(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    while True:
        loss = model(torch.randn(4096, 64, device=device)).square().mean()
        optimizer.zero_grad()
        loss.backward(create_graph=True)
        optimizer.step()
        yield


def good_gradients(device: str) -> Iterator[None]:
    """`loss.backward()` there"""
    model = network(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    while True:
        loss = model(torch.randn(4096, 64, device=device)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield


def bad_result(device: str) -> Iterator[None]:
    """`autograd.grad(loss, x, create_graph=True)`, which is detached"""
    model = network(device)
    while True:
        x = torch.randn(4096, 64, device=device, requires_grad=True)
        loss = model(x).square().mean()
        gradient = torch.autograd.grad(loss, x, create_graph=True)[0]
        x = x.detach() + 0.1 * gradient.detach().sign()
        yield


def good_result(device: str) -> Iterator[None]:
    """`autograd.grad(loss, x)`"""
    model = network(device)
    while True:
        x = torch.randn(4096, 64, device=device, requires_grad=True)
        loss = model(x).square().mean()
        gradient = torch.autograd.grad(loss, x)[0]
        x = x.detach() + 0.1 * gradient.sign()
        yield


def bad_rounds(device: str) -> Iterator[None]:
    """`for loss in losses: loss.backward(retain_graph=True)`, the last one included"""
    model = network(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    while True:
        out = model(torch.randn(4096, 64, device=device))
        losses = [out.square().mean(), out.abs().mean()]
        optimizer.zero_grad()
        for loss in losses:
            loss.backward(retain_graph=True)
        optimizer.step()
        yield


def good_rounds(device: str) -> Iterator[None]:
    """`sum(losses).backward()`"""
    model = network(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    while True:
        out = model(torch.randn(4096, 64, device=device))
        losses = [out.square().mean(), out.abs().mean()]
        optimizer.zero_grad()
        sum(losses, start=torch.zeros((), device=device)).backward()
        optimizer.step()
        yield


def bad_inputs(device: str) -> Iterator[None]:
    """`out.backward(create_graph=True)`, for the sake of `x.grad` alone"""
    model = network(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    while True:
        x = torch.randn(4096, 64, device=device, requires_grad=True)
        model(x).sum().backward(create_graph=True)
        optimizer.zero_grad()
        assert x.grad is not None
        (x.grad.norm(dim=1) - 1).square().mean().backward()
        optimizer.step()
        yield


def good_inputs(device: str) -> Iterator[None]:
    """`autograd.grad(out, x, create_graph=True)`"""
    model = network(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    while True:
        x = torch.randn(4096, 64, device=device, requires_grad=True)
        (gradient,) = torch.autograd.grad(model(x).sum(), x, create_graph=True)
        optimizer.zero_grad()
        (gradient.norm(dim=1) - 1).square().mean().backward()
        optimizer.step()
        yield


def network(device: str) -> nn.Module:
    layers = [layer for _ in range(12) for layer in (nn.Linear(64, 64), nn.Tanh())]
    return nn.Sequential(*layers).to(device)
