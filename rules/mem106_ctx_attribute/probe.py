"""What tensors on `ctx` keep until the garbage collector comes by (here, after eight steps, which are an iteration):
`memlint verify --rules MEM106`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch.autograd import Function

CLAIMS = {"": "peak"}


def bad(device: str) -> Iterator[None]:
    """`ctx.y = y` of an output of 2 MiB, 8 steps an iteration"""

    class Exp(Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            y = x.exp()
            ctx.y = y
            return y

        @staticmethod
        def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
            return grad * ctx.y

    return steps(device, Exp)


def good(device: str) -> Iterator[None]:
    """`ctx.save_for_backward(y)`"""

    class Exp(Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            y = x.exp()
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
            (y,) = ctx.saved_tensors
            return grad * y

    return steps(device, Exp)


def steps(device: str, function: type[Function]) -> Iterator[None]:
    x = torch.zeros(512, 1024, device=device, requires_grad=True)
    while True:
        for _ in range(8):
            function.apply(x).sum().backward()
            x.grad = None
        yield
