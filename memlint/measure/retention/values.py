"""The tensors in a value: in containers, dataclasses, modules and plain objects."""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Iterator
from types import FunctionType, MemberDescriptorType, MethodType
from typing import Any

#: the most levels and the most objects of a value, which may be a whole data set
_DEPTH, _MOST = 6, 10_000
_PLAIN = (str, bytes, bytearray, int, float, complex, type, type(None))


def tensors_in(value: Any, torch: Any, cut: list[bool] | None = None) -> Iterator[Any]:
    """The tensors in ``value``, each once. It runs no code of the program: no properties, iterators or ``__class__``.
    If the value is too large, True is added to ``cut``."""
    seen: set[int] = set()
    kept: list[Any] = []  # keeps temporary objects, so that identities stay unique
    level: list[Any] = [value]
    for _ in range(_DEPTH):
        below: list[Any] = []
        for each in level:
            kind = type(each)
            if id(each) in seen or issubclass(kind, _PLAIN):
                continue
            if len(seen) >= _MOST:
                if cut is not None:
                    cut.append(True)
                return
            seen.add(id(each))
            if issubclass(kind, torch.Tensor):
                yield each
            elif issubclass(kind, torch.nn.Module):
                below += _of_modules(each, seen)
            else:
                below += _parts(each, kind)
        kept += below
        level = below


def _of_modules(module: Any, seen: set[int]) -> list[Any]:
    """The parameters and buffers of a module and of all its submodules."""
    found: list[Any] = []
    waiting = [module]
    while waiting:
        own = dictionary(waiting.pop())
        for name in ("_parameters", "_buffers"):
            found += dict.values(own.get(name, {}))
        for child in dict.values(own.get("_modules", {})):
            if child is not None and id(child) not in seen:
                seen.add(id(child))
                waiting.append(child)
    return found


def _parts(value: Any, kind: type) -> list[Any]:
    if issubclass(kind, dict):
        return [*dict.values(value), *_plain(value, kind)]
    if issubclass(kind, (list, tuple, set, frozenset, deque)):
        return (
            [*value]
            if kind in (list, tuple, set, frozenset, deque)
            else [*_elements(value, kind), *_plain(value, kind)]
        )
    if kind is FunctionType:
        return [cell.cell_contents for cell in value.__closure__ or () if _is_full(cell)]
    if kind is MethodType:
        return [value.__self__]
    if kind is functools.partial:
        return [value.func, *value.args, *value.keywords.values()]
    return _plain(value, kind)


def _elements(value: Any, kind: type) -> Iterator[Any]:
    for base in (list, tuple, set, frozenset, deque):
        if issubclass(kind, base):
            return base.__iter__(value)
    return iter(())


def _plain(value: Any, kind: type) -> list[Any]:
    """The attributes of an object, in slots and in its dictionary."""
    return [held for _, held in slots(value, kind)] + list(dictionary(value).values())


def slots(value: Any, kind: type) -> list[tuple[str, Any]]:
    """The attributes of an object that are in slots, by name."""
    return [
        (member.__name__, member.__get__(value))
        for base in kind.__mro__
        if "__slots__" in base.__dict__
        for member in base.__dict__.values()
        if type(member) is MemberDescriptorType and _has(value, member)
    ]


def dictionary(value: Any) -> dict[str, Any]:
    """The attributes of an object that are in its dictionary."""
    try:
        own = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return {}
    return own if type(own) is dict else {}


def _has(value: Any, member: MemberDescriptorType) -> bool:
    try:
        member.__get__(value)
    except AttributeError:
        return False
    return True


def _is_full(cell: Any) -> bool:
    try:
        _ = cell.cell_contents
    except ValueError:
        return False
    return True
