"""One loop over the run of the program: how often it runs, and what the process holds at its tops."""

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

#: iterations are timed as far as this
_TIMED = 10_000
_SHOWN = 8
#: ticks and seconds that the end of a run is waited for in which something has grown; and that later runs are, so many
_FOR_ITS_END, _FOR_RUNS, _RUNS = (1_000, 10.0), (5_000, 60.0), 12
#: places of which is asked who keeps what they made
_ASKED = 8


class Waiting(NamedTuple):
    """Since when it is waited for what has grown to go: by the clock, and by the runs of the loop."""

    tick: int
    seconds: float
    runs: int

    def is_over(self, tick: int, runs: int, ended: bool) -> bool:
        """Whether it has been long enough; ``ended``: the run has."""
        ticks, seconds = _FOR_RUNS if ended or runs > self.runs else _FOR_ITS_END
        return runs - self.runs > _RUNS or tick - self.tick > ticks or time.monotonic() - self.seconds > seconds


class LoopWatch:
    """Reads the meters at ``window`` + 1 tops that follow each other in one run of the loop, after ``warmup`` tops.

    What has grown then is looked at for another window: an accumulation or a buffer that is emptied gives it back. So
    does, when its run has ended, what is kept for as long as that (``waits``), or for some more runs: the steps of an
    episode, of a batch of them.
    """

    def __init__(self, number: int, warmup: int, window: int) -> None:
        self.number = number
        self.tops = 0
        self.runs = 0
        #: runs that ended by themselves, or by break
        self.whole_runs = 0
        self.longest = 0
        self.outer: set[int] = set()
        self.holds_loops = False
        #: whether an optimizer steps in it, and in no loop in it
        self.trains = False
        self.readings: list[dict[str, Any]] = []
        self.ticks: list[int] = []
        self.times: list[float] = []
        #: the clock at the first tops of this run, and what runs tell that are shorter than a window
        self.turns: list[int] = []
        self.short = ShortRuns()
        self.code: CodeType | None = None
        self.survivors: dict[str, Any] | None = None
        self.suspect = False
        self.done = False
        #: what is held when garbage has been collected behind a window that grew
        self.settled: Bytes | None = None
        #: and of host memory beside tensors, each time that it was looked at, with the clock
        self._later: list[tuple[int, int]] = []
        #: its window is over, and what has grown in it may yet go
        self.waits: Waiting | None = None
        self._tops_at_end: int | None = None
        self.run_ended = False
        self.looked_at = 0
        #: the clock at the last top
        self.tick = 0
        self._jumped = False
        self._warmup = warmup
        self.window = window
        self._last = 0.0
        self._run: Any = None

    @property
    def open(self) -> bool:
        """Whether its window is being measured, or the iterations that lead to it."""
        return not self.done and (bool(self.ticks) or 0 < self.tops <= self._warmup)

    def time(self, run: Any) -> None:
        """Note how long the iteration took that has just ended."""
        now = time.perf_counter()
        if run is self._run and len(self.times) < _TIMED:
            self.times.append(now - self._last)
        self._last, self._run = now, run

    def read(self, meter: Meter, host: Callable[[], int] | None, tick: int) -> bool:
        """At a top. Whether a window is over with it: the first, or the second of a suspect."""
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
            # a library's workspace or an optimizer's state has come, and hides what else there was: look behind it
            self._jumped = True
            del self.readings[: jump + 1]
            return False
        return over

    def wait(self, tick: int) -> None:
        """Its window is over, with growth."""
        self.waits = Waiting(tick, time.monotonic(), self.runs)
        self._tops_at_end = self.tops

    @property
    def host_settled(self) -> int | None:
        """The least host memory beside tensors that there was behind its window; what there was before it, where later
        runs filled and emptied it again, or where it grew no more."""
        if is_level(self._later) or self._grows_no_more():
            return beside_tensors(self.readings[0])
        return min((host for _, host in self._later), default=None)

    def _grows_no_more(self) -> bool:
        """Whether host memory has gained no more than noise an iteration since its window, over as many iterations:
        what it gained there was set aside by libraries in their first steps, or comes and goes in a longer period."""
        held = beside_tensors(self.readings[-1]) if self.readings else None
        if held is None or not self._later or self._tops_at_end is None:
            return False
        passed = self.tops - self._tops_at_end
        return passed >= self.window and self._later[-1][1] - held < NOISE * passed

    def is_given_back(self) -> bool:
        """Whether less is held again than when its window was half over."""
        settled = self.settled or {}
        half = self.readings[len(self.readings) // 2]["requested"]
        if rises_on_host(self.readings, self.host_settled):
            return False
        return all(settled.get(device, held) <= held for device, held in half.items())

    def settle(self, held: Bytes, host: int | None) -> None:
        """Note what is held now, if that is less than ever since its window was over."""
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
    """Where one step gains more than all others together move; None where there is no such."""
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
    """What was born in a window and is alive, in bytes by generation. ``ticks``: the clock at each top of the window,
    ``last``: at the last top of the loop. ``following``: the sites that follow a storage, by its address. ``ask``:
    tells who keeps what; ``sites``: those that were seen to follow what a place made, which gets more;
    ``counts``: tells which storages count.

    ``groups``: by the sites that follow the storages, or others that were made at the same places. ``stacks``: the
    places that made most of it. ``latest``: where what is alive and youngest was made.
    """
    count = len(ticks) - 1
    rows: dict[tuple[Frame, ...], list[int]] = {}
    latest: dict[tuple[Frame, ...], int] = {}
    kept: dict[tuple[Frame, ...], list[Born]] = {}
    for key, born in ledger.alive.copy().items():
        number = bisect.bisect_right(ticks, born.tick) - 1
        if key in following:  # a site is known by what its hits before the window kept, too
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
    """Of what one place made, the first and two of the middle: what it made last may still be in use."""
    third = len(born) // 3
    few = {id(each): each for each in (born[0], born[third], born[2 * third])}
    storages = [storage for each in few.values() if (storage := strong(each.reference)) is not None]
    return [Target(storage._cdata, storage.nbytes(), storage) for storage in storages]


def shown(stack: tuple[Frame, ...]) -> list[dict[str, Any]]:
    """A stack as JSON, innermost first, without what runs the program."""
    return [
        {"path": frame[0].co_filename, "line": lines(frame), "function": frame[0].co_name}
        for frame in stack
        if not frame[0].co_filename.startswith(HERE)
    ]


def grows(ledger: Ledger, ticks: list[int]) -> bool:
    """Whether both halves of a window left something; the last iteration's may still be in use."""
    half = (len(ticks) - 2) // 2
    first = second = False
    for born in ledger.alive.copy().values():
        if ticks[0] <= born.tick < ticks[half]:
            first = True
        elif ticks[half] <= born.tick < ticks[-2]:
            second = True
    return first and second


def climbs(readings: list[dict[str, Any]]) -> bool:
    """Whether some device held ever more."""
    return any(
        rises([reading["requested"].get(device, 0) for reading in readings]) for device in readings[-1]["requested"]
    )
