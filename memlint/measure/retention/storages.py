"""The storages of tensors, and their devices."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable, Iterable, Iterator
from typing import Any


def heap() -> list[Any]:
    """All objects that the garbage collector tracks. It undoes ``gc.freeze()``, as frozen objects cannot be listed;
    freezing only saves time."""
    if gc.get_freeze_count():
        gc.unfreeze()
    return gc.get_objects()


@contextlib.contextmanager
def without_collections() -> Iterator[None]:
    """Disable automatic garbage collection meanwhile."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def strong(reference: Callable[[], Any]) -> Any:
    """The storage of a weak reference, as a strong reference; None if it was freed. Without `_fix_weakref`, an older
    torch would free the storage with its last tensor."""
    storage = reference()
    if storage is not None:
        storage._fix_weakref()
    return storage


def tensors_among(objects: Iterable[Any], torch: Any) -> Iterator[Any]:
    """The tensors among some objects."""
    # not isinstance, which reads `__class__`: some objects compute it, and import modules
    return (each for each in objects if issubclass(type(each), torch.Tensor))


def storages_of(tensors: list[Any], torch: Any) -> Iterator[Any]:
    """The storages of tensors, and of the parts of sparse and wrapper tensors."""
    waiting = list(tensors)
    while waiting:
        tensor = waiting.pop()
        if not issubclass(type(tensor), torch.Tensor):
            continue
        if hasattr(type(tensor), "__tensor_flatten__"):
            waiting += [getattr(tensor, name, None) for name in tensor.__tensor_flatten__()[0]]
        elif tensor.layout is torch.sparse_coo:
            waiting += [tensor._indices(), tensor._values()]
        else:
            storage = storage_of(tensor)
            if storage is not None:
                yield storage


def storage_of(tensor: Any) -> Any:
    """The storage of a tensor; None without one (sparse, opaque) or on the meta device."""
    try:
        storage = tensor.untyped_storage()
        return None if storage.device.type == "meta" else storage
    except (NotImplementedError, RuntimeError, AttributeError):
        return None


def device_of(storage: Any) -> str:
    device = storage.device
    return device.type if device.index is None else f"{device.type}:{device.index}"
