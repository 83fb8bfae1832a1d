"""The measurement of one loop: its runs and iterations, and what the process holds at its tops."""

from __future__ import annotations

import bisect
import itertools
import time
from collections.abc import Callable
from types import CodeType
from typing import Any, NamedTuple

from ..memory.halves import rises
from ..memory.host import NOISE, beside_tensors, is_level, resident, rises_on_host
from ..memory.meters import Bytes, Meter
from ..memory.tracker import Born, Frame, Ledger, lines
from ..retention.owners import Ask, Target
from ..retention.storages import strong
from ..stacks import HERE
from .short import ShortRuns

#: the most iterations that are timed
_TIMED = 10_000
_SHOWN = 8
#: ticks and seconds to wait for the end of a run with growth, and for later runs, of which there are at most so many
_FOR_ITS_END, _FOR_RUNS, _RUNS = (1_000, 10.0), (5_000, 60.0), 12
#: the most stacks whose holders are searched
_ASKED = 8


class Waiting(NamedTuple):
    """The tick, the time and the number of runs at the end of a window with growth, which may yet be released."""

    tick: int
    seconds: float
    runs: int

    def is_over(self, tick: int, runs: int, ended: bool) -> bool:
        """Whether to wait no longer. ``ended``: the run has ended."""
        ticks, seconds = _FOR_RUNS if ended or runs > self.runs else _FOR_ITS_END
        return runs - self.runs > _RUNS or tick - self.tick > ticks or time.monotonic() - self.seconds > seconds


class LoopWatch:
    """Reads the meters at ``window`` + 1 successive tops of one run of the loop, after ``warmup`` tops.

    Growth is checked in a second window: an accumulation or a buffer may be emptied in it. After that, ``waits``:
    memory may be released at the end of the run, or of several runs, such as the steps of an episode."""

    def __init__(self, number: int, warmup: int, window: int) -> None:
        self.number = number
        self.tops = 0
        self.runs = 0
        #: runs that ended by themselves, or by break
        self.whole_runs = 0
        self.longest = 0
        self.outer: set[int] = set()
        self.holds_loops = False
        #: whether an optimizer steps in it, outside its inner loops
        self.trains = False
        self.readings: list[dict[str, Any]] = []
        self.ticks: list[int] = []
        self.times: list[float] = []
        #: the ticks at the first tops of this run, and the measurement of runs shorter than a window
        self.turns: list[int] = []
        self.short = ShortRuns()
        self.code: CodeType | None = None
        self.survivors: dict[str, Any] | None = None
        self.suspect = False
        self.done = False
        #: the least bytes by device after a window with growth and a garbage collection
        self.settled: Bytes | None = None
        #: ticks, with host memory beside tensors, after that window
        self._later: list[tuple[int, int]] = []
        #: set while the growth of its window may yet be released
        self.waits: Waiting | None = None
        self._tops_at_end: int | None = None
        self.run_ended = False
        self.looked_at = 0
        #: the tick at the last top
        self.tick = 0
        self._jumped = False
        self._warmup = warmup
        self.window = window
        self._last = 0.0
        self._run: Any = None

    @property
    def open(self) -> bool:
        """Whether its window or the warm-up before it is running."""
        return not self.done and (bool(self.ticks) or 0 < self.tops <= self._warmup)

    def time(self, run: Any) -> None:
        """Note the seconds of the iteration that has just ended."""
        now = time.perf_counter()
        if run is self._run and len(self.times) < _TIMED:
            self.times.append(now - self._last)
        self._last, self._run = now, run

    def read(self, meter: Meter, host: Callable[[], int] | None, tick: int) -> bool:
        """Take a reading at a top. Returns whether a window ends with it: the first, or the second if the first
        grew."""
        if self.tops <= self._warmup:
            return False
        if not self.suspect:
            self.ticks.append(tick)
        reading: dict[str, Any] = {"requested": meter.read(), "fragments": meter.fragments()}
        if host is not None:
            reading["host"] = host()
        reading.update(resident())
        self.readings.append(reading)
        over = len(self.readings) > (2 if self.suspect else 1) * self.window
        if over and self.suspect and not self._jumped and (jump := _jump(self.readings)) is not None:
            # a library's workspace or an optimizer's state was allocated, which hides other growth: read on after it
            self._jumped = True
            del self.readings[: jump + 1]
            return False
        return over

    def wait(self, tick: int) -> None:
        """Its window is over, with growth: wait for its release."""
        self.waits = Waiting(tick, time.monotonic(), self.runs)
        self._tops_at_end = self.tops

    @property
    def host_settled(self) -> int | None:
        """The least host memory beside tensors after its window, in bytes; that before the window if it grows no more
        or is emptied repeatedly; None if unknown."""
        if is_level(self._later) or self._grows_no_more():
            return beside_tensors(self.readings[0])
        return min((host for _, host in self._later), default=None)

    def _grows_no_more(self) -> bool:
        """Whether host memory has gained no more than noise an iteration since its window, over as many iterations. Its
        gain then was an allocation of libraries in the first steps, or it fluctuates over a longer period."""
        held = beside_tensors(self.readings[-1]) if self.readings else None
        if held is None or not self._later or self._tops_at_end is None:
            return False
        passed = self.tops - self._tops_at_end
        return passed >= self.window and self._later[-1][1] - held < NOISE * passed

    def is_given_back(self) -> bool:
        """Whether no more is held than in the middle of its window."""
        settled = self.settled or {}
        half = self.readings[len(self.readings) // 2]["requested"]
        if rises_on_host(self.readings, self.host_settled):
            return False
        return all(settled.get(device, held) <= held for device, held in half.items())

    def settle(self, held: Bytes, host: int | None) -> None:
        """Note the bytes that are held now, if they are the least since its window."""
        known = self.settled
        if host is not None:
            self._later.append((self.tick, host))
        self.settled = held if known is None else {name: min(held.get(name, 0), known.get(name, 0)) for name in known}

    def forget(self) -> None:
        """Its run was too short for a window."""
        self.readings.clear()
        self.ticks.clear()
        self.turns.clear()

    def data(self) -> dict[str, Any]:
        """All that was measured, as JSON."""
        short = self.short if not self.done else None
        survivors, readings = self.survivors, self.readings if self.done else []
        if short is not None and short.grows:
            survivors, readings = short.survivors, short.read()
        return {
            "id": self.number,
            "tops": self.tops,
            "runs": self.runs,
            "longest": self.longest,
            "outer": sorted(self.outer),
            "inner": not self.holds_loops,
            "readings": readings,
            "survivors": survivors,
            "short": None if short is None else short.data(),
            "settled": self.settled,
            "host_settled": self.host_settled,
            "seconds": self.times,
        }


def _jump(readings: list[dict[str, Any]]) -> int | None:
    """The index of a step that changes more than all others together; None without one."""
    series = [[reading["requested"].get(device, 0) for reading in readings] for device in readings[-1]["requested"]]
    host = [each for reading in readings if (each := beside_tensors(reading)) is not None]
    for held in (*series, host) if len(host) == len(readings) else series:
        steps = [after - before for before, after in itertools.pairwise(held)]
        most = max(steps)
        if 2 * most > sum(map(abs, steps)):
            return steps.index(most)
    return None


def survivors(
    ledger: Ledger,
    ticks: list[int],
    last: int,
    following: dict[int, tuple[int, ...]],
    ask: Ask,
    sites: dict[tuple[Frame, ...], set[int]],
    counts: Callable[[Born], bool] = lambda _: True,
) -> dict[str, Any]:
    """The live storages that were allocated in a window, in bytes by iteration, as JSON. ``ticks``: at each top of the
    window; ``last``: at the last top of the loop. ``following``: the sites that follow a storage, by its address.
    ``ask``: searches holders. ``sites``: the sites that follow storages of a stack; new ones are added. ``counts``:
    whether a storage counts.

    ``groups``: by the sites of their stacks. ``stacks``: those that allocated most. ``latest``: those that allocated
    the youngest live storages."""
    count = len(ticks) - 1
    rows: dict[tuple[Frame, ...], list[int]] = {}
    latest: dict[tuple[Frame, ...], int] = {}
    kept: dict[tuple[Frame, ...], list[Born]] = {}
    for key, born in ledger.alive.copy().items():
        number = bisect.bisect_right(ticks, born.tick) - 1
        if key in following:  # also by storages from before the window
            sites.setdefault(born.stack, set()).update(following[key])
        if not counts(born):
            continue
        if number >= count and born.tick >= last - 1:
            latest[born.stack] = latest.get(born.stack, 0) + born.nbytes
            kept.setdefault(born.stack, []).append(born)
        if not 0 <= number < count:
            continue
        rows.setdefault(born.stack, [0] * count)[number] += born.nbytes
        kept.setdefault(born.stack, []).append(born)
    groups: dict[tuple[int, ...], list[int]] = {}
    for stack, row in rows.items():
        group = groups.setdefault(tuple(sorted(sites.get(stack, ()))), [0] * count)
        for number, nbytes in enumerate(row):
            group[number] += nbytes
    most = sorted(rows.items(), key=lambda item: -sum(item[1]))[:_SHOWN]
    youngest = sorted(latest.items(), key=lambda item: -item[1])[:_SHOWN]
    asked = dict.fromkeys(stack for stack, _ in [*most[:_ASKED], *youngest[:1]])
    owned = ask({number: _few(kept[stack]) for number, stack in enumerate(asked)})
    holders = {stack: owned.get(number, []) for number, stack in enumerate(asked)}
    return {
        "groups": [{"sites": list(group), "bytes": row} for group, row in groups.items()],
        "stacks": [
            {
                "bytes": row,
                "sites": sorted(sites.get(stack, ())),
                "frames": shown(stack),
                "holders": holders.get(stack, []),
            }
            for stack, row in most
        ],
        "latest": [
            {"bytes": nbytes, "frames": shown(stack), "holders": holders.get(stack, [])} for stack, nbytes in youngest
        ],
    }


def _few(born: list[Born]) -> list[Target]:
    """Three storages of one stack, not the last ones, which may still be in use."""
    third = len(born) // 3
    few = {id(each): each for each in (born[0], born[third], born[2 * third])}
    storages = [storage for each in few.values() if (storage := strong(each.reference)) is not None]
    return [Target(storage._cdata, storage.nbytes(), storage) for storage in storages]


def shown(stack: tuple[Frame, ...]) -> list[dict[str, Any]]:
    """A stack as JSON, innermost frame first, without the frames of memlint."""
    return [
        {"path": frame[0].co_filename, "line": lines(frame), "function": frame[0].co_name}
        for frame in stack
        if not frame[0].co_filename.startswith(HERE)
    ]


def grows(ledger: Ledger, ticks: list[int]) -> bool:
    """Whether both halves of a window have live storages, without the last iteration, whose storages may be in use."""
    half = (len(ticks) - 2) // 2
    first = second = False
    for born in ledger.alive.copy().values():
        if ticks[0] <= born.tick < ticks[half]:
            first = True
        elif ticks[half] <= born.tick < ticks[-2]:
            second = True
    return first and second


def climbs(readings: list[dict[str, Any]]) -> bool:
    """Whether the memory of a device grows (see `rises`)."""
    return any(
        rises([reading["requested"].get(device, 0) for reading in readings]) for device in readings[-1]["requested"]
    )
