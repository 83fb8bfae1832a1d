"""One loop over the run of the program: how often it runs, and what the process holds at its tops."""

from __future__ import annotations

import bisect
import time
from collections.abc import Callable
from typing import Any

from .meters import Meter
from .tracker import Frame, Ledger, lines

#: iterations are timed as far as this
_TIMED = 10_000
_SHOWN = 8


class LoopWatch:
    """Reads the meters at ``window`` + 1 tops that follow each other in one run of the loop, after ``warmup`` tops."""

    def __init__(self, number: int, warmup: int, window: int) -> None:
        self.number = number
        self.tops = 0
        self.runs = 0
        self.longest = 0
        self.outer: set[int] = set()
        self.holds_loops = False
        self.readings: list[dict[str, Any]] = []
        self.ticks: list[int] = []
        self.times: list[float] = []
        self.survivors: dict[str, Any] | None = None
        self.done = False
        self._warmup = warmup
        self._window = window
        self._last = 0.0
        self._run: Any = None

    @property
    def open(self) -> bool:
        """Whether its window is being measured."""
        return bool(self.ticks) and not self.done

    def time(self, run: Any) -> None:
        """Note how long the iteration took that has just ended."""
        now = time.perf_counter()
        if run is self._run and len(self.times) < _TIMED:
            self.times.append(now - self._last)
        self._last, self._run = now, run

    def read(self, first: bool, meter: Meter, host: Callable[[], int] | None, tick: int) -> bool:
        """At a top. ``first``: the run has just begun. Whether the window is over with it."""
        if first:
            self.readings.clear()
            self.ticks.clear()
        if self.tops <= self._warmup:
            return False
        self.ticks.append(tick)
        reading: dict[str, Any] = {"requested": meter.read(), "fragments": meter.fragments()}
        if host is not None:
            reading["host"] = host()
        self.readings.append(reading)
        self.done = len(self.readings) > self._window
        return self.done

    def data(self) -> dict[str, Any]:
        """All that was measured, as JSON."""
        return {
            "id": self.number,
            "tops": self.tops,
            "runs": self.runs,
            "longest": self.longest,
            "outer": sorted(self.outer),
            "inner": not self.holds_loops,
            "readings": self.readings if self.done else [],
            "survivors": self.survivors,
            "seconds": self.times,
        }


def survivors(ledger: Ledger, ticks: list[int], followed: set[int]) -> dict[str, Any]:
    """What was born in a window and is alive: bytes by generation; and the stacks that made most of what no site
    follows. ``ticks``: the clock at each top of the window. ``followed``: addresses of storages that sites follow.
    """
    generations = [0] * (len(ticks) - 1)
    stacks: dict[tuple[Frame, ...], list[int]] = {}
    for key, born in list(ledger.alive.items()):
        number = bisect.bisect_right(ticks, born.tick) - 1
        if not 0 <= number < len(generations):
            continue
        generations[number] += born.nbytes
        if key not in followed:
            stacks.setdefault(born.stack, [0] * len(generations))[number] += born.nbytes
    most = sorted(stacks.items(), key=lambda item: -sum(item[1]))[:_SHOWN]
    return {
        "bytes": generations,
        "stacks": [{"bytes": by_generation, "frames": shown(stack)} for stack, by_generation in most],
    }


def shown(stack: tuple[Frame, ...]) -> list[dict[str, Any]]:
    """A stack as JSON, innermost first."""
    return [
        {"path": frame[0].co_filename, "line": lines(frame), "function": frame[0].co_name} for frame in stack
    ]


def grows(generations: list[int]) -> bool:
    """Whether both halves of a window left something; the last iteration's may still be in use."""
    half = (len(generations) - 1) // 2
    return any(generations[:half]) and any(generations[half:-1])


def rises(readings: list[dict[str, Any]]) -> bool:
    """Whether some device held more at each top of the second half than at any of the first: batches of changing
    sizes make the bytes go up and down."""
    half = len(readings) // 2
    for device in readings[-1]["requested"] if half else ():
        held = [reading["requested"].get(device, 0) for reading in readings]
        if min(held[half:]) > max(held[:half]):
            return True
    return False
