"""Objects of which many are kept drop their empty containers, which make up most of a summary."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

_CONTAINERS: frozenset[type[Any]] = frozenset({dict, list, set})
#: by class: what its attributes are made of that were empty in some object
_MADE: dict[type[Any], dict[str, type[Any]]] = {}


class Compactable:
    """An object whose empty containers `compact` drops; they are made again when they are read."""

    def compact(self) -> None:
        """Drop all empty containers."""
        made, kept = _MADE.setdefault(type(self), {}), {}
        for name, value in vars(self).items():
            if not value and type(value) in _CONTAINERS:  # (see `emptied`: this runs for each of millions)
                made[name] = type(value)
            else:
                kept[name] = value
        self.__dict__ = kept

    if not TYPE_CHECKING:  # (else every name would be an attribute)

        def __getattr__(self, name: str) -> Any:
            make = _MADE.get(type(self), {}).get(name)
            if make is None:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            value = self.__dict__[name] = make()
            return value


def emptied(value: object) -> bool:
    """Whether an attribute with this value may be dropped."""
    return not value and type(value) in _CONTAINERS
