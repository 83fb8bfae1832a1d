"""What was made of texts, for a process that reads the same ones again and again.

A run reads each text once or twice, and lets go of what it made; the language server's worker remembers (`remember`).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class _Memory:
    """What was made of texts, the least recently used one first. ``most``: the characters of all of them; 0 remembers
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
    """A function of a text alone, whose results nobody changes."""

    def __init__(self, make: Callable[[str], T]) -> None:
        self._make = make

    def __call__(self, text: str) -> T:
        found: T = _MEMORY.get((id(self), text), self._make)
        return found


def remember(characters: int) -> None:
    """Keep what is made of so many characters from now on."""
    _MEMORY.most = characters
