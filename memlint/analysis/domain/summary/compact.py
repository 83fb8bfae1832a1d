"""Objects that drop their empty containers, which take most of a summary's memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

_CONTAINERS: frozenset[type[Any]] = frozenset({dict, list, set})
#: by class, the types of those attributes that were empty in some object
_MADE: dict[type[Any], dict[str, type[Any]]] = {}


class Compactable:
    """An object whose empty containers `compact` drops. They are created again when they are read."""

    def compact(self) -> None:
        """Drop all empty containers."""
        made, kept = _MADE.setdefault(type(self), {}), {}
        for name, value in vars(self).items():
            if not value and type(value) in _CONTAINERS:  # `emptied` inlined, as this runs millions of times
                made[name] = type(value)
            else:
                kept[name] = value
        self.__dict__ = kept

    if not TYPE_CHECKING:  # otherwise every name would pass as an attribute

        def __getattr__(self, name: str) -> Any:
            make = _MADE.get(type(self), {}).get(name)
            if make is None:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            value = self.__dict__[name] = make()
            return value


def emptied(value: object) -> bool:
    """Whether `compact` drops an attribute with this value."""
    return not value and type(value) in _CONTAINERS
