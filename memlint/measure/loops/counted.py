"""Loops shorter than a window, on devices with counters only: what each run gains, and whether that is still held when
the next run begins, in two successive runs."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..memory.halves import rises
from ..memory.meters import Bytes
from .short import LEAST, MORE, MOST, SMALLEST, ShortRuns

#: the share of a run's gain that must be held after it: the last batch may be smaller than the first
_PART = 0.9


class _Run(NamedTuple):
    """The gain of one run on a device, in all and per iteration, and the bytes at its first and second top."""

    first: int
    second: int
    gain: int
    each: int


class _Stayed(NamedTuple):
    """Successive runs whose gain was held after them. ``base``: the bytes before the first of them."""

    base: int
    gain: int
    runs: int


class CountedRuns(ShortRuns):
    """Compares the bytes of two runs at their first tops or their ends, so that batches of different sizes do not
    matter. The first iteration of a run does not count: it allocates optimizer state or a library's workspace. Only for
    loops with a loop around them."""

    def __init__(self) -> None:
        super().__init__()
        self._held: list[Bytes] = []
        self._end: Bytes = {}
        #: the last run by device, until it is known whether its gain is held
        self._ended: dict[str, _Run] = {}
        self._stayed: dict[str, _Stayed] = {}
        #: by device, the most successive runs whose gain was released at once after them
        self._lived: dict[str, int] = {}

    @property
    def undecided(self) -> bool:
        waits = bool(self._ended or self._stayed)
        return waits and self.runs < MOST and all(one.runs <= MORE for one in self._stayed.values())

    @property
    def grows(self) -> bool:
        return bool(self._growing())

    def _growing(self) -> set[str]:
        return {device for device, one in self._stayed.items() if one.runs > 1 + self._lived.get(device, 0)}

    @property
    def tells(self) -> bool:
        return self.runs > 1 and bool(self.passing)

    def read(self) -> list[dict[str, Any]]:
        growing = self._growing()
        return [
            {**one, "requested": {device: held for device, held in one["requested"].items() if device in growing}}
            for one in self.readings
        ]

    @property
    def suspect(self) -> bool:
        """Whether the last run's gain is held."""
        return bool(self._stayed)

    def top(self, held: Bytes) -> None:
        """An iteration begins. ``held``: bytes by device."""
        if not self._held:
            self.look(held)
        self._held.append(held)

    def end(self, held: Bytes, most: int) -> None:
        """A run has ended. ``most``: the most tops of a short run."""
        tops, self._held = self._held, []
        if self.runs >= MOST or not LEAST <= len(tops) <= most:
            return
        self.runs += 1
        before, self._end = self._end, held
        for device, count in held.items():
            self._passes(device, 0)
            counts = [each.get(device, 0) for each in tops]
            gain = counts[-1] - counts[1]
            run = _Run(counts[0], counts[1], gain, gain // (len(counts) - 2))
            if run.each < SMALLEST or not rises(counts[1:]):
                self._stayed.pop(device, None)
            elif before and count - before.get(device, 0) < _PART * gain:
                self._stayed.pop(device, None)
                self._passes(device, run.each)
            else:
                self._ended[device] = run
                self.readings = [{"requested": each, "fragments": {}} for each in tops[1:]]

    def look(self, held: Bytes, *, finished: bool = False) -> None:
        for device, one in [*self._stayed.items()]:
            if not finished and held.get(device, 0) - one.base < one.gain / 2:
                self._lived[device] = max(self._lived.get(device, 0), one.runs - 1)
                del self._stayed[device]
        ended, self._ended = self._ended, {}
        for device, run in ended.items():
            count = held.get(device, 0)
            if count - max(run.first, run.second) >= _PART * run.gain:
                known = self._stayed.get(device, _Stayed(run.first, 0, 0))
                self._stayed[device] = _Stayed(known.base, known.gain + run.gain, known.runs + 1)
            elif not finished:
                self._stayed.pop(device, None)
                self._passes(device, run.each)
