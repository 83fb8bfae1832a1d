"""An order of the items of a set that is the same in every run, whatever the seed of Python's hashes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from typing import TypeVar

_T = TypeVar("_T")
#: how many values within values are compared; what differs only deeper has no fixed order
_DEPTH = 8
#: the content of each value by its identity and depth: modules share their parts, so a walk without it has no bound
_Known = dict[tuple[int, int], str]


def in_stable_order(items: Iterable[_T], rank: Callable[[_T], str]) -> tuple[_T, ...]:
    """The items by rank, and by what they hold where several have the same rank."""
    ranks = {item: rank(item) for item in items}
    if len({*ranks.values()}) < len(ranks):
        known: _Known = {}
        ranks = {item: shown + _content(item, 0, known) for item, shown in ranks.items()}
    return tuple(sorted(ranks, key=ranks.__getitem__))


def _content(part: object, depth: int, known: _Known) -> str:
    """A short text that stands for what a value holds."""
    if isinstance(part, str | int | float | None):
        return repr(part)
    key = (id(part), depth)
    if key not in known:
        known[key] = hashlib.sha256(_text(part, depth, known).encode()).hexdigest()
    return known[key]


def _text(part: object, depth: int, known: _Known) -> str:
    """What a value holds, as text in which no order is that of a set."""
    if isinstance(part, frozenset):
        return f"{{{','.join(sorted(_content(one, depth, known) for one in part))}}}"
    if isinstance(part, tuple):
        return f"({','.join(_content(one, depth, known) for one in part)})"
    # an abstract value has no cycles; other objects may have some
    inner = depth < _DEPTH and hasattr(part, "kinds")
    fields: Iterable[str] = getattr(part, "__slots__", ()) if inner else ()
    return f"{type(part).__name__}({','.join(_content(getattr(part, name), depth + 1, known) for name in fields)})"
