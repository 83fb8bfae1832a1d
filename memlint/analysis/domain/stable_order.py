"""An order of the items of a set that is the same in every run, whatever the seed of Python's hashes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

_T = TypeVar("_T")


def in_stable_order(items: Iterable[_T], rank: Callable[[_T], str]) -> tuple[_T, ...]:
    """The items by rank, and by what they hold where several have the same rank."""
    ranks = {item: rank(item) for item in items}
    if len({*ranks.values()}) < len(ranks):
        ranks = {item: known + _content(item) for item, known in ranks.items()}
    return tuple(sorted(ranks, key=ranks.__getitem__))


def _content(part: object) -> str:
    """What a value holds, as text in which no order is that of a set."""
    if isinstance(part, frozenset):
        return f"{{{','.join(sorted(map(_content, part)))}}}"
    if isinstance(part, tuple):
        return f"({','.join(map(_content, part))})"
    if isinstance(part, str | int | float | None):
        return repr(part)
    # an abstract value has no cycles; other objects may have some
    fields: Iterable[str] = getattr(part, "__slots__", ()) if hasattr(part, "kinds") else ()
    return f"{type(part).__name__}({','.join(_content(getattr(part, name)) for name in fields)})"
