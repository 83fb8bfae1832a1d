"""All is measured, and the program runs on: what is known is only counted, by a few instructions an iteration."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import FrameType
from typing import Any

from ..loops.clocks import Clocks
from ..loops.loops import LoopWatch
from ..loops.running import Run, Running
from ..memory.meters import CpuMeter, Meter
from ..plan import Plan
from ..sites.sites import SiteWatch

#: hits of a place that left nothing, after which nothing more is looked at
_SAMPLED = 2_000


class Rest:
    """``loops`` and ``sites``: those of which no more is wanted than how often they come; empty while it is not on.
    ``in_loops``: the loop around a place in its function, ``due``: the places that are to be judged."""

    def __init__(
        self,
        loops: Mapping[int, LoopWatch],
        sites: Mapping[int, SiteWatch],
        in_loops: Mapping[int, int],
        running: Running,
        clocks: Clocks,
    ) -> None:
        self.on = False
        self.loops: dict[int, LoopWatch] = {}
        self.sites: dict[int, SiteWatch] = {}
        self._all = loops
        self._places = sites
        self._in_loops = in_loops
        self._running = running
        self._clocks = clocks
        self._closed = False
        self._steps = 0

    def begin(self, plan: Plan, meter: Meter, due: Collection[SiteWatch]) -> bool:
        """Nothing sees any more what is made. Whether it may be so: not where a picture of the whole run is wanted,
        another run is compared with this, iterations are counted to an end, or the program has put a mode of its own
        around what runs now. On an accelerator the meter costs little, and says when the peak came."""
        if plan.picture or plan.seed is not None or plan.max_steps is not None or plan.stop_at is not None:
            return False
        if isinstance(meter, CpuMeter):
            meter.close_if_outermost()
            self._closed = meter.closed
            if not self._closed:
                return False
        self.on = True
        self._clocks.rest()
        self.look(due)
        return True

    def look(self, due: Collection[SiteWatch]) -> None:
        """Which places have nothing more to say? The loops around others go on to be watched."""
        places = self._places.values()
        self.sites = {site.number: site for site in places if site not in due and _is_known(site)}
        left = [site for site in places if site.number not in self.sites]
        busy = {loop for site in left for loop in (*site.loops, self._in_loops.get(site.number, 0))}
        self._count_alone(
            {number: loop for number, loop in self._all.items() if number > 0 and loop.tops and number not in busy}
            if self._closed
            else {}
        )

    def _count_alone(self, loops: dict[int, LoopWatch]) -> None:
        """These loops are counted, and none else."""
        for run in self._running.runs:
            watch = self._all[run.loop]
            if run.loop in self.loops:
                run.count = watch.tops - run.first
                watch.longest = max(watch.longest, run.count)
            run.first = watch.tops - run.count
        for number in self.loops.keys() | loops.keys():
            watch = self._all[number]
            if not watch.holds_loops:  # its iterations are steps
                self._steps += watch.tops if number in self.loops else 0
                self._steps -= watch.tops if number in loops else 0
        self.loops = loops

    def end(self) -> int:
        """A loop has come that was not read yet, or the program has ended. Gives the steps that were counted here."""
        if self.on:
            self._count_alone({})
            self._clocks.wake()
        self.on = self._closed = False
        self.sites = {}
        steps, self._steps = self._steps, 0
        return steps

    def enter(self, watch: LoopWatch, around: tuple[int, ...], frame: FrameType, number: int) -> None:
        """A loop that is known begins."""
        self._running.enter(watch.number, around, frame, number, settle=False).first = watch.tops
        watch.runs += 1

    def exit(self, run: Run) -> bool:
        """A loop that is known has ended. Whether that is all: nothing that was kept in this run is followed."""
        watch = self._all[run.loop]
        run.count = watch.tops - run.first
        watch.longest = max(watch.longest, run.count)
        currents = (site.runs.current for site in self._places.values())
        if any(current is not None and current.number == run.number for current in currents):
            return False
        watch.whole_runs += 1
        return True

    def count(self, run: Run) -> int:
        """The iterations of a run so far."""
        watch = self.loops.get(run.loop)
        return run.count if watch is None else watch.tops - run.first

    def hit(self, site: SiteWatch) -> None:
        """A place that is known is reached."""
        site.hits += 1
        if site.runs.current is not None:
            site.runs.current.hits += 1

    def turned(self, kind: str, subject: Any) -> bool:
        """A library's loop may have come to its next iteration: whether it is one that is known, and counted."""
        step = self._clocks.count(kind, subject) if self.on else None
        self._steps += bool(step)
        return step is not None


def _is_known(site: SiteWatch) -> bool:
    if site.recording or not site.windows or site.runs.following:
        return False
    return not site.sampling or site.hits > _SAMPLED
