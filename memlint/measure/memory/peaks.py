"""The peak of each device, and its parts: parameters, gradients, the state of optimizers. The rest is activations,
inputs and whatever else the program keeps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..retention.storages import device_of, heap, storages_of
from .meters import Bytes, Meter

#: the most peaks whose parts are read, and the factor by which each must exceed the one before
_MOST, _HIGHER = 6, 1.1


class Peaks:
    """The highest peak of each device so far."""

    def __init__(self) -> None:
        self._rows: dict[str, dict[str, Any]] = {}
        self._looked = 0

    def note(self, meter: Meter, step: int, loop: int, torch: Any, *, look: bool) -> None:
        """Note a new peak, at a top of a loop or at the end. ``step``: the number of the last iteration; ``look``: read
        the parts of the peak, if the model still exists."""
        due: list[dict[str, Any]] = []
        for device, most in meter.peak().items():
            row = self._rows.setdefault(device, {"bytes": 0, "known_at": 0, "kept": None, "device": device})
            if most <= row["bytes"]:
                continue
            row.update(bytes=most, step=step, loop=loop, grad=torch.is_grad_enabled())
            if look and step and self._looked < _MOST and most > _HIGHER * row["known_at"]:
                due.append(row)
        if due:
            self._looked += 1
            kept = _kept(torch)
            for row in due:
                row.update(kept={name: held.get(row["device"], 0) for name, held in kept.items()})
                row["known_at"] = row["bytes"]

    def data(self) -> list[dict[str, Any]]:
        """The peaks as JSON."""
        return [row for row in self._rows.values() if row["bytes"]]


def _states(optimizer: Any) -> list[Any]:
    """The state of an optimizer by parameter; empty if its constructor did not call that of the base."""
    held = getattr(optimizer, "__dict__", {}).get("state")
    return list(held.values()) if isinstance(held, Mapping) else []


def _kept(torch: Any) -> dict[str, Bytes]:
    """The bytes of parameters, gradients and optimizer state by device. Each storage counts once."""
    there = heap()
    optimizer = torch.optim.Optimizer
    with torch._C.DisableTorchFunctionSubclass():
        parameters = [each for each in there if issubclass(type(each), torch.nn.Parameter)]
        gradients = [each.grad for each in parameters if each.is_leaf and each.grad is not None]
        states = [
            value
            for each in there
            if issubclass(type(each), optimizer)
            for state in _states(each)
            if type(state) is dict
            for value in list(state.values())
        ]
        seen: set[int] = set()
        found: dict[str, Bytes] = {}
        for name, tensors in (("parameters", parameters), ("gradients", gradients), ("optimizer", states)):
            held = found.setdefault(name, {})
            for storage in storages_of(tensors, torch):
                if storage._cdata not in seen:
                    seen.add(storage._cdata)
                    held[device_of(storage)] = held.get(device_of(storage), 0) + storage.nbytes()
    return found
