"""The losses that ``backward()`` was called on, to compare two runs of a program."""

from __future__ import annotations

import functools
from typing import Any

_MOST = 4096


class Losses:
    """Keeps the first 4,096 losses in a buffer on their device, which does not grow and does not wait for the
    device."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._buffer: Any = None
        self._count = 0
        backward = torch.autograd.backward

        @functools.wraps(backward)
        def noting(tensors: Any, *arguments: Any, **options: Any) -> Any:
            if self._count < _MOST and not torch.compiler.is_compiling():
                if not isinstance(tensors, (torch.Tensor, tuple, list)):
                    tensors = tuple(tensors)  # an iterator can be consumed once only
                try:
                    self._note(tensors)
                except Exception:  # a tensor subclass, a device without float64: the loss is not kept
                    pass
            return backward(tensors, *arguments, **options)

        torch.autograd.backward = noting

    def _note(self, tensors: Any) -> None:
        torch = self._torch
        for tensor in (tensors,) if isinstance(tensors, torch.Tensor) else tuple(tensors):
            if isinstance(tensor, torch.Tensor) and tensor.numel() == 1 and self._count < _MOST:
                with torch.no_grad():
                    if self._buffer is None:
                        self._buffer = torch.zeros(_MOST, dtype=torch.float64, device=tensor.device)
                    self._buffer[self._count] = tensor.detach().reshape(()).to(self._buffer.device)
                self._count += 1

    def data(self) -> list[float]:
        """The numbers, in order. Waits for the device."""
        return [] if self._buffer is None else [float(value) for value in self._buffer[: self._count].tolist()]
