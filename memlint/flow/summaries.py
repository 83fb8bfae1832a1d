"""Summaries on demand, each with what was asked while it was made.

After the first round the call sites are known, and tell what parameters and attributes are. A summary is made again
only where one of its questions has another answer now: the rest of the program keeps what it has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from memlint.flow.flags import Flags
from memlint.flow.frame import Frame
from memlint.flow.program import Function
from memlint.flow.sameness import same_summary

#: summaries that wait for each other: deeper chains are cut (their calls are unknown)
MAX_NESTING = 24

#: summaries of one function that are made for literals; other calls get the one for any argument
MAX_VARIANTS = 4

#: module, qualified name, literals
Key = tuple[str, str, Flags]


class Summaries:
    """``make`` interprets a function; ``ask`` answers a question that is not about a summary."""

    def __init__(self, make: Callable[[Function, Flags], Frame], ask: Callable[[str, Any], Any]) -> None:
        self._make = make
        self._ask = ask
        self._known: dict[Key, Frame | None] = {}
        #: by function: (kind, identity of what was asked) -> (what was asked, the answer)
        self._asked: dict[Key, dict[tuple[str, Any], tuple[Any, Any]]] = {}
        self._variants: dict[tuple[str, str], set[Flags]] = {}
        self._old: dict[Key, Frame | None] = {}
        self._running: list[Key] = []
        self._again: set[Key] = set()
        self._open: list[dict[tuple[str, Any], tuple[Any, Any]]] = []

    def get(self, function: Function, flags: Flags = ()) -> Frame | None:
        """What the function does, called with these literals; None for one that is being analysed (recursion) or
        too deep."""
        known = self._variants.setdefault(function.key, set())
        if flags and flags not in known and len(known) >= MAX_VARIANTS:
            flags = ()
        known.add(flags)
        frame = self._get(function, flags)
        key = (*function.key, flags)
        self.note("summary", key, (function, flags), None if key in self._running else frame)
        return frame

    def calls_itself(self, function: Function) -> bool:
        """Whether the function is called from itself, its summary not made yet: that path ends elsewhere first."""
        if not self._running or self._running[-1][:2] != function.key or self._running[-1] in self._known:
            return False
        self._again.add(self._running[-1])
        return True

    def note(self, kind: str, identity: Any, about: Any, answer: Any) -> None:
        """Remember that the summary that is being made depends on this answer."""
        if self._open:
            self._open[-1].setdefault((kind, identity), (about, answer))

    def _get(self, function: Function, flags: Flags) -> Frame | None:
        key = (*function.key, flags)
        if key in self._known:
            return self._known[key]
        if key in self._running or len(self._running) >= MAX_NESTING:
            return None
        self._running.append(key)
        self._open.append({})
        try:
            if key in self._old and self._holds(key):
                frame = self._old[key]
            else:
                self._open[-1] = {}
                frame = self._make(function, flags)
                if key in self._again and not frame.cut_short:
                    # a function that calls itself: once more, with what its other paths do for the inner call
                    self._known[key] = frame
                    frame = self._make(function, flags)
                self._asked[key] = self._open[-1]
                old = self._old.get(key)
                if old is not None and frame is not None and same_summary(old, frame):
                    frame = old  # so that those who asked for it hold
        finally:
            self._again.discard(key)
            self._running.pop()
            self._open.pop()
        self._known[key] = frame
        return frame

    def _holds(self, key: Key) -> bool:
        """Whether every question that was asked for a summary has the same answer still."""
        for (kind, _), (about, answer) in self._asked[key].items():
            if kind == "summary":
                if self._get(*about) is not answer:
                    return False
            elif self._ask(kind, about) != answer:
                return False
        return True

    def renew(self) -> None:
        """Put all summaries in question."""
        self._old, self._known = self._known, {}

    def frames(self) -> Iterator[Frame]:
        """All summaries that were made for any argument."""
        return (frame for frame in self._known.values() if frame is not None and not frame.flags)
