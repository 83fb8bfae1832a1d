"""Memoised functions of texts, for a process that reads the same texts repeatedly.

A run reads each text once or twice, and keeps nothing; the language server's worker remembers (`remember`).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class _Memory:
    """The results by text, the least recently used one first. ``most``: the characters of all texts; 0 remembers
    nothing."""

    def __init__(self) -> None:
        self.most = 0
        self._size = 0
        self._known: OrderedDict[tuple[int, str], Any] = OrderedDict()

    def get(self, key: tuple[int, str], make: Callable[[str], Any]) -> Any:
        text = key[1]
        if len(text) * 4 > self.most:
            return make(text)
        if key in self._known:
            self._known.move_to_end(key)
            return self._known[key]
        made = self._known[key] = make(text)
        self._size += len(text)
        while self._size > self.most:
            self._size -= len(self._known.popitem(last=False)[0][1])
        return made


_MEMORY = _Memory()


class Remembered(Generic[T]):
    """A memoised function of a text, whose results are immutable."""

    def __init__(self, make: Callable[[str], T]) -> None:
        self._make = make

    def __call__(self, text: str) -> T:
        found: T = _MEMORY.get((id(self), text), self._make)
        return found


def remember(characters: int) -> None:
    """Remember the results for texts of so many characters from now on."""
    _MEMORY.most = characters
