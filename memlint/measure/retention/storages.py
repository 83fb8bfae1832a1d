"""The storages of tensors, and where they are."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable, Iterable, Iterator
from typing import Any


def heap() -> list[Any]:
    """All objects that the garbage collector knows. What ``gc.freeze()`` has put aside is shown by nothing, so it comes
    back: freezing saves time of collections, and no more."""
    if gc.get_freeze_count():
        gc.unfreeze()
    return gc.get_objects()


@contextlib.contextmanager
def without_collections() -> Iterator[None]:
    """Meanwhile Python collects no garbage by itself."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def strong(reference: Callable[[], Any]) -> Any:
    """The storage of a weak reference, to be kept; None where it is gone. Until torch has another way to keep it, an
    older one has to be told that Python does: else it goes with its last tensor."""
    storage = reference()
    if storage is not None:
        storage._fix_weakref()
    return storage


def tensors_among(objects: Iterable[Any], torch: Any) -> Iterator[Any]:
    """The tensors among some objects."""
    # (not isinstance: it would ask objects with a `__class__` of their own, some of which import things)
    return (each for each in objects if issubclass(type(each), torch.Tensor))


def storages_of(tensors: list[Any], torch: Any) -> Iterator[Any]:
    """The storages of tensors, and of those that a sparse or a wrapping tensor consists of."""
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
    """The storage of a tensor; None where it has none (sparse, opaque) or where it is on the meta device."""
    try:
        storage = tensor.untyped_storage()
        return None if storage.device.type == "meta" else storage
    except (NotImplementedError, RuntimeError, AttributeError):
        return None


def device_of(storage: Any) -> str:
    device = storage.device
    return device.type if device.index is None else f"{device.type}:{device.index}"
