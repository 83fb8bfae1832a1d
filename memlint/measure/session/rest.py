"""After all is measured, while the program runs on: known loops and sites are only counted, at little cost."""

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

#: hits of a site that left nothing, after which its hits are only counted
_SAMPLED = 2_000


class Rest:
    """``loops`` and ``sites``: those that are only counted; empty unless ``on``. ``in_loops``: the loop around a site
    in its function; ``due``: the sites to be checked."""

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
        """Stop following storages. Returns whether that is possible: not with a chart of the whole run, a comparison of
        two runs, a limit of iterations, or a dispatch mode of the program inside memlint's. On an accelerator the meter
        stays on: it costs little, and finds the peak."""
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
        """Find the sites that are measured, and the loops without other sites."""
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
        """Count these loops alone."""
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
        """End it, because an unmeasured loop has begun or the program has ended. Returns the steps that were
        counted."""
        if self.on:
            self._count_alone({})
            self._clocks.wake()
        self.on = self._closed = False
        self.sites = {}
        steps, self._steps = self._steps, 0
        return steps

    def enter(self, watch: LoopWatch, around: tuple[int, ...], frame: FrameType, number: int) -> None:
        """A counted loop begins."""
        self._running.enter(watch.number, around, frame, number, settle=False).first = watch.tops
        watch.runs += 1

    def exit(self, run: Run) -> bool:
        """A counted loop has ended. Returns whether no site is followed in this run."""
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
        """A counted site is reached."""
        site.hits += 1
        if site.runs.current is not None:
            site.runs.current.hits += 1

    def turned(self, kind: str, subject: Any) -> bool:
        """A library's loop may have come to its next iteration. Returns whether that was counted here."""
        step = self._clocks.count(kind, subject) if self.on else None
        self._steps += bool(step)
        return step is not None


def _is_known(site: SiteWatch) -> bool:
    if site.recording or not site.windows or site.runs.following:
        return False
    return not site.sampling or site.hits > _SAMPLED
