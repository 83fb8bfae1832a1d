"""Objects that many are kept of let go of their empty containers: most of what a summary could hold, it does not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

_CONTAINERS: frozenset[type[Any]] = frozenset({dict, list, set})
#: by class: what its attributes are made of that were empty in some object
_MADE: dict[type[Any], dict[str, type[Any]]] = {}


class Lean:
    """An object whose empty containers go with `slim`, and come back where somebody asks for them."""

    def slim(self) -> None:
        """Let go of all that is empty."""
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
    """Whether an attribute with this value may just as well not be there."""
    return not value and type(value) in _CONTAINERS
