"""Loops shorter than a window: what each iteration of one run leaves, and whether that is still live at the end of
later runs. Growth in two of them is not a cache that fills once."""

from __future__ import annotations

import bisect
import functools
import gc
import os
from collections.abc import Callable
from types import CodeType
from typing import Any

from ..memory.meters import Bytes
from ..memory.tracker import Born, Frame, Ledger
from ..stacks import PACKAGES

#: the least iterations of a run that is judged, and of a single run
LEAST, LEAST_ALONE = 5, 6
#: the least bytes per iteration of a stack that is followed
SMALLEST = 512
#: the most runs that are followed, and the most later runs after which a storage counts as kept
MOST, MORE = 12, 4

#: instead of readings at the tops of a short run, which are too few to judge host memory
UNREAD: tuple[dict[str, Any], ...] = ({"requested": {}, "fragments": {}},) * 2

_TORCH = tuple(f"{each}torch{os.sep}" for each in PACKAGES)

Stack = tuple[Frame, ...]
#: gives `loops.survivors` for ticks and a filter
Look = Callable[[list[int], Callable[[Born], bool]], "dict[str, Any]"]


class ShortRuns:
    """The short runs of one loop; this class itself judges nothing. ``runs``: the number of runs that were long enough;
    ``survivors``: as of a window, for the last run with growth; ``passing``: bytes per iteration that were released
    after a run, by device."""

    def __init__(self) -> None:
        self.runs = 0
        self.readings: list[dict[str, Any]] = []
        self.survivors: dict[str, Any] | None = None
        self.passing: dict[str, int] = {}

    @property
    def undecided(self) -> bool:
        """Whether further runs may change the result."""
        return False

    @property
    def grows(self) -> bool:
        """Whether the runs show growth."""
        return False

    @property
    def tells(self) -> bool:
        """Whether there were enough runs to judge."""
        return False

    def read(self) -> list[dict[str, Any]]:
        """The readings of a run with growth, of the devices that grow."""
        return self.readings

    def look(self, held: Bytes, *, finished: bool = False) -> None:
        """A loop around it or the program has ended: check whether what the last run left is still held. ``held``: the
        bytes now. If the program has ``finished``, released memory may have been held until then."""

    def _passes(self, device: str, each: int) -> None:
        self.passing[device] = max(each, self.passing.get(device, 0))

    def data(self) -> dict[str, Any]:
        """As JSON."""
        return {"tells": self.tells, "passing": self.passing}


class FollowedRuns(ShortRuns):
    """The short runs of a loop on the CPU, where each storage is followed."""

    def __init__(self) -> None:
        super().__init__()
        self.readings = [*UNREAD]
        self.passing = {"cpu": 0}
        self._later = 0
        #: the most later runs that something was live in before it was released
        self._lived = 0
        self._first: dict[Stack, list[Born]] = {}
        self._last: dict[Stack, list[Born]] = {}
        self._iterations = 0
        self._each = 0
        self._looks = 0
        self._show: Callable[[Callable[[Born], bool]], dict[str, Any]] | None = None

    @property
    def undecided(self) -> bool:
        return bool(self._first) and self._later < MORE and self.runs < MOST

    @property
    def grows(self) -> bool:
        if self.survivors is None:
            return False
        return self._later > self._lived if self.runs > 1 else self._is_enough

    @property
    def tells(self) -> bool:
        return self.runs > 1 or self._is_enough

    @property
    def _is_enough(self) -> bool:
        """Whether the last run is long enough to be judged alone."""
        return self._iterations >= LEAST_ALONE - 2

    def end(self, ledger: Ledger, ticks: list[int], code: CodeType | None, look: Look) -> None:
        """A run has ended. ``ticks``: at each of its tops; ``code``: of its function; ``look``: gives survivors."""
        if self.runs >= MOST or len(ticks) < LEAST:
            return
        self.runs += 1
        left = lasting(ledger, ticks[1:], code)
        if left or self._first:
            gc.collect()
            left = lasting(ledger, ticks[1:], code)
        stays = {stack for stack, kept in self._first.items() if _are_alive(kept)}
        if self._first and not stays:
            self._passed()
            self._lived = max(self._lived, self._later)
        both = stays & left.keys()
        self._iterations = len(ticks) - 2
        if both:
            self._first = {stack: self._first[stack] for stack in both}
            self._later += 1
        else:
            self._first, self._later = left, 0
            self._each = sum(born.nbytes for kept in left.values() for born in kept) // self._iterations
        self._last = {stack: left[stack] for stack in self._first}
        self._show = functools.partial(look, ticks[1:])
        self._note()

    def _note(self) -> None:
        """Note the survivors among what the last run left."""
        found = {id(each) for kept in self._last.values() for each in kept}
        self.survivors = self._show(lambda born: id(born) in found) if found and self._show is not None else None

    def look(self, held: Bytes, *, finished: bool = False) -> None:
        # what a later run has replaced was released with that run
        if not self._first or (finished and self._later and not any(map(_are_alive, self._last.values()))):
            return
        self._looks += 1
        if self._looks > 2 * MOST or not (finished or self._later):
            return  # the next run decides
        gc.collect()
        stays = {stack: kept for stack, kept in self._first.items() if _are_alive(kept)}
        if len(stays) == len(self._first):
            return
        self._first = stays
        self._last = {stack: self._last[stack] for stack in stays}
        if not stays:
            self._passed()
            self._later = 0
        self._note()

    def _passed(self) -> None:
        self._passes("cpu", self._each)


def lasting(ledger: Ledger, ticks: list[int], code: CodeType | None) -> dict[Stack, list[Born]]:
    """The live storages of the stacks that every iteration between ``ticks`` has allocated at. Stacks are compared
    below the function of ``code``, wherever that is called."""
    count = len(ticks) - 1
    found: dict[Stack, list[Born]] = {}
    seen: dict[Stack, set[int]] = {}
    for born in ledger.alive.copy().values():
        number = bisect.bisect_right(ticks, born.tick) - 1
        if born.stack and 0 <= number < count:
            place = _below(born.stack, code)
            found.setdefault(place, []).append(born)
            seen.setdefault(place, set()).add(number)
    return {
        place: kept
        for place, kept in found.items()
        if len(seen[place]) == count and sum(born.nbytes for born in kept) >= SMALLEST * count
    }


def _below(stack: Stack, code: CodeType | None) -> Stack:
    """The part of a stack that is equal in each run: without torch's frames, which change with hooks of modules."""
    at = next((place for place, (each, _) in enumerate(stack) if each is code), len(stack) - 1)
    return stack[:1] + tuple(
        frame for frame in stack[1 : at + 1] if not any(each in frame[0].co_filename for each in _TORCH)
    )


def _are_alive(kept: list[Born]) -> bool:
    return all(born.reference() is not None for born in kept)
