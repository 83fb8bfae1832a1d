"""The tensors in a value: in containers, dataclasses and plain objects."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

#: how deep, and how many things are looked at: a value may be a whole data set
_DEPTH, _MOST = 6, 10_000


def tensors_in(value: Any, torch: Any) -> Iterator[Any]:
    """The tensors of ``value``, each once. Calls nothing of the program: neither properties nor iterators."""
    seen: set[int] = set()
    level: list[Any] = [value]
    for _ in range(_DEPTH):
        below: list[Any] = []
        for each in level:
            if id(each) in seen or len(seen) >= _MOST:
                continue
            seen.add(id(each))
            if isinstance(each, torch.Tensor):
                yield each
            elif not isinstance(each, torch.nn.Module):
                below += _parts(each)
        level = below


def _parts(value: Any) -> list[Any]:
    if isinstance(value, (str, bytes, bytearray, int, float, complex, type)) or value is None:
        return []
    if isinstance(value, dict):
        return list(dict.values(value))
    if isinstance(value, (list, tuple, set, frozenset)):
        return list(value)
    attributes = getattr(type(value), "__dict__", {}).get("__slots__", ())
    names = (attributes,) if isinstance(attributes, str) else tuple(attributes)
    slots = [object.__getattribute__(value, name) for name in names if _has(value, name)]
    own = getattr(value, "__dict__", None) if not callable(value) or hasattr(value, "__dataclass_fields__") else None
    return slots + (list(own.values()) if isinstance(own, dict) else [])


def _has(value: Any, name: str) -> bool:
    try:
        object.__getattribute__(value, name)
    except AttributeError:
        return False
    return True
