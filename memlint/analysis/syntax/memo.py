"""What is found out about a piece of a program once, and kept until the run is over."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

_T = TypeVar("_T")
_R = TypeVar("_R")
_P = ParamSpec("_P")
_KEPT: list[dict[Any, Any]] = []
_MAX_KEPT = 50_000


def kept(answer: Callable[[_T], _R]) -> Callable[[_T], _R]:
    """Keep what is found out about an expression or a body until the run is over, by identity, which is good as long
    as they are held: the same ones are asked about in every pass over the loops around them."""
    known: dict[int, tuple[_T, _R]] = {}
    _KEPT.append(known)

    @functools.wraps(answer)
    def ask(about: _T) -> _R:
        found = known.get(id(about))
        if found is None:
            if len(known) > _MAX_KEPT:
                known.clear()
            found = known[id(about)] = (about, answer(about))
        return found[1]

    return ask


def kept_for(answer: Callable[_P, _R]) -> Callable[_P, _R]:
    """As `kept`, of several arguments by position, names as they are. (Other equal ones would be found by hashing all
    that is in them.)"""
    known: dict[tuple[int | str, ...], tuple[Any, _R]] = {}
    _KEPT.append(known)

    @functools.wraps(answer)
    def ask(*about: _P.args, **_: _P.kwargs) -> _R:
        key = tuple([one if isinstance(one, str) else id(one) for one in about])
        found = known.get(key)
        if found is None:
            if len(known) > _MAX_KEPT:
                known.clear()
            found = known[key] = (about, answer(*about, **_))
        return found[1]

    return ask


def forgotten(known: dict[Any, Any]) -> None:
    """Let go of what is in it as well when a run is over."""
    _KEPT.append(known)


def forget() -> None:
    """Let go of everything that is kept: a run is over."""
    for known in _KEPT:
        known.clear()
