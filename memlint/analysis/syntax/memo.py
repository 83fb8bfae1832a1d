"""Memoisation by the identity of IR nodes, for the length of a run."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

_T = TypeVar("_T")
_R = TypeVar("_R")
_P = ParamSpec("_P")
_MEMOS: list[dict[Any, Any]] = []
_MAX_ENTRIES = 50_000


def kept(answer: Callable[[_T], _R]) -> Callable[[_T], _R]:
    """Memoise a function of an expression or a body by identity, which is valid as the nodes live as long as the
    run."""
    known: dict[int, tuple[_T, _R]] = {}
    _MEMOS.append(known)

    @functools.wraps(answer)
    def ask(about: _T) -> _R:
        found = known.get(id(about))
        if found is None:
            if len(known) > _MAX_ENTRIES:
                known.clear()
            found = known[id(about)] = (about, answer(about))
        return found[1]

    return ask


def kept_for(answer: Callable[_P, _R]) -> Callable[_P, _R]:
    """As `kept`, for several positional arguments; strings are compared by value. (To hash nodes by value would cost
    more than the function.)"""
    known: dict[tuple[int | str, ...], tuple[Any, _R]] = {}
    _MEMOS.append(known)

    @functools.wraps(answer)
    def ask(*about: _P.args, **_: _P.kwargs) -> _R:
        key = tuple([one if isinstance(one, str) else id(one) for one in about])
        found = known.get(key)
        if found is None:
            if len(known) > _MAX_ENTRIES:
                known.clear()
            found = known[key] = (about, answer(*about, **_))
        return found[1]

    return ask


def cleared_at_end(known: dict[Any, Any]) -> None:
    """Clear this memo too at the end of a run."""
    _MEMOS.append(known)


def forget() -> None:
    """Clear all memos at the end of a run."""
    for known in _MEMOS:
        known.clear()
