"""The measurement of one process: receives the reports of probes, and decides when the program is stopped."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
import traceback
from pathlib import Path
from types import FrameType
from typing import Any

from ..loops.clocks import Clocks, ClockWatch, Turn
from ..loops.loops import LoopWatch
from ..loops.losses import Losses
from ..loops.running import Run, Running
from ..memory.meters import CpuMeter, meter_for
from ..memory.peaks import Peaks
from ..plan import Plan
from ..processes.agreement import agreement
from ..processes.files import write
from ..processes.spawned import Spawned, number_here, rank_here
from ..sites.site_runs import stack_of
from ..sites.sites import SiteWatch
from .checks import Checks
from .environment import environment, why_not
from .rest import Rest
from .stopping import Patience
from .timeline import Timeline
from .windows import Windows

#: seconds between two writes of the results without new decisions
_SECONDS = 1.0
#: the number of times that `Stop` is raised in a program that catches it, before the process is ended
_PATIENCE = 5


class Stop(BaseException):
    """Ends the program once all is measured. Not an `Exception`, which programs catch."""


class Quit(Stop, SystemExit):
    """Ends a spawned process: for multiprocessing, it exits normally."""


class Session:
    """Receives the reports of probes. Methods may be called from any thread."""

    def __init__(self, plan: Plan, spawned: bool = False) -> None:
        self.plan = plan
        self._spawned = spawned
        self.torch: Any = None
        self.active = True
        self.missing: list[int] = []
        self._losses: Losses | None = None
        limit = plan.warmup + plan.window
        sites = [site for file in plan.files for site in file.sites]
        self._sites = {site.id: SiteWatch(site.id, plan.warmup, limit) for site in sites}
        self._loops = {
            loop.id: LoopWatch(loop.id, plan.warmup, plan.window) for file in plan.files for loop in file.loops
        }
        in_loops = {site.id: site.loop for site in sites if site.loop is not None}
        self._patience = Patience(self._sites, self._loops, in_loops, limit)
        self._windows = Windows(self._loops, self._sites.values(), plan)
        self.paths = {os.path.realpath(path) for path in (plan.target, *(file.path for file in plan.files))}
        self._checks = Checks(self._sites, self._windows, plan.warmup, self.paths, self._judged)
        self._running = Running()
        self._runs = 0
        own = {os.path.realpath(path) for path in (*plan.own, *self.paths)}
        self._clocks = Clocks(self._loops, self._running, own, (plan.warmup, plan.window), self._new_run)
        self.rest = Rest(self._loops, self._sites, in_loops, self._running, self._clocks)
        self.lock = threading.RLock()
        self._tick = 0
        self._steps = 0
        self._timeline = Timeline()
        self._peaks = Peaks()
        self._asked = 0
        self._stopped_at: tuple[int, int] | None = None
        self._ready = False
        self._written = 0.0
        self._started = time.time()
        self._thread = threading.get_ident()
        self._process = os.getpid()
        self._end: dict[str, Any] = {"kind": "running"}
        self._rank = "" if spawned else os.environ.get("RANK", "0")
        self._agreement = Spawned(plan.output) if spawned else agreement(plan.output)

    @property
    def _is_here(self) -> bool:
        """Whether this is the thread whose loops are measured."""
        return threading.get_ident() == self._thread

    def leave(self) -> None:
        """Stop measuring."""
        self.active = False
        self._checks.ignore_collections()
        self._clocks.remove()

    def broken(self, error: Exception) -> None:
        """A probe has failed: stop measuring, and report it."""
        self.leave()
        lines = traceback.format_exception(type(error), error, error.__traceback__)
        self._end = {"kind": "broken", "reason": "".join(lines)}
        with contextlib.suppress(Exception):
            self.write()

    def torch_came(self) -> None:
        """torch is imported: begin to measure. Raises Stop if that is impossible."""
        torch = sys.modules["torch"]
        if (reason := why_not(torch, self.plan.device)) is not None:
            self.finish({"kind": "environment", "reason": reason})
            raise Stop
        self.torch = self._checks.torch = torch
        self._windows.begin(meter_for(self.plan.device, torch), torch)
        if self.plan.seed is not None:
            torch.manual_seed(self.plan.seed)
            if "numpy" in sys.modules:  # torch imports it where it is installed
                sys.modules["numpy"].random.seed(self.plan.seed)
        if self._sites:
            self._checks.follow_collections()
        if self.plan.losses:
            self._losses = Losses(torch)
        if self.plan.gpu_memory is not None:
            if self._windows.meter.name == "cpu":
                self.finish({"kind": "environment", "reason": "--gpu-memory needs a GPU, and there is none here"})
                raise Stop
            from ..memory.limits import limit_devices

            limit_devices(torch, self.plan.gpu_memory)

    def follow(self, turn: Turn) -> None:
        """Register for the iterations of libraries' loops."""
        self._clocks.install(self.torch, turn)

    # loops

    def _new_run(self) -> int:
        self._runs += 1
        return self._runs

    def enter(self, number: int, around: tuple[int, ...], frame: FrameType) -> None:
        """A loop is about to begin."""
        if number in self.rest.loops:
            self.rest.enter(self._loops[number], around, frame, self._new_run())
            return
        self._running.enter(number, around, frame, self._new_run())
        runs = self._running.runs
        self._loops[number].outer.update(run.loop for run in runs[:-1])
        for site in self._sites.values():
            if site.loops and site.loops[-1] == number:
                self._checks.note_old(site)
        if self._is_here:
            self._forget(self._loops[number])

    def top(self, number: int, frame: FrameType) -> None:
        """An iteration of a loop begins."""
        watch = self._loops[number]
        run = self._running.top(number, frame)
        if run is None:
            self.enter(number, (), frame)
            run = self._running.runs[-1]
        self._turned(watch, run)

    def turn(self, kind: str, subject: Any, frame: FrameType) -> None:
        """A loop of a library may have come to its next iteration."""
        if not self._is_here or (run := self._clocks.turned(kind, subject, frame)) is None:
            return
        for over in self._clocks.over():
            self._ended(over)
        watch = self._loops[run.loop]
        if not run.count:
            self._forget(watch)
        self._turned(watch, run)

    def _turned(self, watch: LoopWatch, run: Run) -> None:
        """An iteration of a run begins."""
        number = watch.number
        counts = self._clocks.counts(watch)
        if not run.count:
            watch.runs += 1
            for around in self._running.runs:
                if around is not run and not self._loops[around.loop].holds_loops:
                    self._steps -= around.count  # they were no steps
            if counts:
                self._timeline.begin(run.number, number, self._steps)
            for outer in watch.outer:
                self._loops[outer].holds_loops = True
        if self.rest.on and not watch.tops:
            self._wake()
        run.count += 1
        watch.tops += 1
        watch.longest, watch.code = max(watch.longest, run.count), run.code
        self._tick += 1
        self._checks.tick = self._tick
        self._note()
        here = self.torch is not None and self._is_here
        if here and not self.rest.loops:
            self._peaks.note(self._windows.meter, self._steps, number, self.torch, look=True)
        if counts and not watch.holds_loops:
            self._steps += 1
        self._windows.tick(self._tick)
        if not isinstance(watch, ClockWatch):
            self._checks.settle(number)
        if here and not self.rest.on and self._windows.top(watch, self._tick):
            self._judged()
        watch.time(run)
        rests = here and self._ready and self.plan.full and not self.rest.on
        if rests and self.rest.begin(self.plan, self._windows.meter, self._checks.due):
            self.write()
        if not self._ready and self._patience.is_due(self._tick):
            self._ready = self._all_measured()
        self._maybe_stop(watch)

    def _note(self, *, always: bool = False) -> None:
        """Add a point to the timeline if one is due."""
        if self.torch is not None and self._is_here and not self.rest.loops:
            windows = self._windows
            self._timeline.note(self._steps, windows.meter, windows.host, self._sites.values(), always=always)

    def _wake(self) -> None:
        """A loop has begun that is not measured yet: follow storages again."""
        if self._is_here:
            self._steps += self.rest.end()
            self._ready = False
            if isinstance(meter := self._windows.meter, CpuMeter):
                meter.open_if_outermost()

    def exit(self, number: int, frame: FrameType) -> None:
        """A loop has ended by itself or by break."""
        run = self._running.exit(number, frame)
        if run is not None and not (number in self.rest.loops and self.rest.exit(run)):
            self._ended(run)

    def _ended(self, run: Run) -> None:
        number = run.loop
        for site in self._sites.values():
            if site.generations and number in site.loops and not site.measured:
                self._checks.check_exit(site)
        if self._is_here:
            self._checks.end_runs(run.number)
            self._windows.look_around(number)
        self._loops[number].whole_runs += 1
        if self._is_here:  # before `_all_measured`: this run may require more of them
            self._forget(self._loops[number])
        self._ready = self._ready or self._all_measured()
        self._timeline.end(run.number, self._steps)
        self._note()

    def _forget(self, watch: LoopWatch) -> None:
        """A run of a loop is over, or the next one begins: end its window."""
        if self._windows.forget(watch, self._tick):
            self._judged()

    def _judged(self) -> None:
        """A loop or the window of a site is measured: write the results."""
        self._ready = self._all_measured()
        self.write()

    # sites

    def hit(self, number: int, value: Any, frame: FrameType) -> None:
        """A site is reached, with the first of its values."""
        site = self._sites[number]
        if site.full and (site in self._checks.due or site.recording) and len(site.windows) < 2 and site.alone:
            self._checks.check_alone(site)
        if not site.full or not site.runs.decided:
            self._running.settle(frame)
        clocks = self._clocks.around()
        runs = [] if self._clocks.is_inside(self._running.runs) else self._running.runs
        site.clocks = tuple(each.loop for each in clocks)
        inner = runs[-1] if runs and not (site.full and not site.loops) else clocks[-1] if clocks else None
        iteration = (0, site.hits + 1) if inner is None else (inner.number, self.rest.count(inner))
        run = site.comprehension or (runs[-1] if runs else None)
        if site.begin(iteration, tuple(each.loop for each in runs), run):
            if site.hits == 1:
                site.stack = stack_of(frame)
            self.value(number, value)
        if site not in self._checks.due and (
            (site.recording and site.full) or (site.hits >= site.limit + self.plan.window and len(site.windows) == 1)
        ):
            self._checks.due.append(site)
        if self.rest.on:
            self.rest.look(self._checks.due)

    def begin_comprehension(self, number: int, frame: FrameType) -> None:
        """A comprehension begins whose elements are hits of a site. It counts as a run of a loop."""
        site = self._sites[number]
        self._runs += 1
        site.comprehension = Run(0, self._runs, frame)
        self._checks.note_old(site)

    def end_comprehension(self, number: int) -> None:
        """The comprehension is complete."""
        run, self._sites[number].comprehension = self._sites[number].comprehension, None
        if run is not None and self._is_here:
            self._checks.end_runs(run.number)

    def value(self, number: int, value: Any) -> None:
        """A further value of the hit."""
        self._checks.value(self._sites[number], value)

    # the end

    def _all_measured(self) -> bool:
        return self._patience.all_measured(self._tick, alone=self._agreement is None)

    def _maybe_stop(self, watch: LoopWatch) -> None:
        if not self._is_enough(watch):
            if time.time() - self._written > _SECONDS:
                self.write()
            return
        if not self._is_here:
            return
        self._asked += 1
        self._stopped_at = self._stopped_at or (watch.number, watch.tops)
        if self._asked > _PATIENCE:
            self.finish({"kind": "stopped", "reason": "it caught every exception, and was ended"})
            os._exit(0)
        if self._spawned:
            self.finish({"kind": "stopped"})
            raise Quit(0)
        raise Stop

    def _is_enough(self, watch: LoopWatch) -> bool:
        """Whether to stop the program at this top."""
        plan = self.plan
        if plan.stop_at is not None:
            return watch.number == plan.stop_at[0] and watch.tops >= plan.stop_at[1]
        if plan.max_steps is not None and watch.tops > plan.max_steps:
            return True
        if plan.full or not self._ready or not self._is_here:
            return False
        if self._agreement is not None and self._windows.meter.name == "cuda" and self.torch.cuda.is_initialized():
            # the host may be a hundred iterations ahead of its device, and so of the other ranks
            self.torch.cuda.synchronize()
        return self._agreement is None or self._agreement.reached(
            watch.number,
            {loop.number: loop.tops for loop in self._loops.values() if loop.tops},
            [site.number for site in self._sites.values() if not site.hits],
        )

    def finish(self, end: dict[str, Any]) -> None:
        """The program has ended: check what is left, and write the results."""
        if not self.active or self._end["kind"] != "running":
            return
        self._end = end
        if self._stopped_at is not None:
            end["at"] = self._stopped_at
        try:
            if self.torch is not None:
                self._windows.running = False
                for loop in self._loops.values():
                    if loop.suspect and not loop.done:
                        self._windows.close(loop)
                    loop.short.look(self._windows.meter.read(), finished=True)
                self._note(always=True)
                self._steps += self.rest.end()
                self._peaks.note(self._windows.meter, self._steps, 0, self.torch, look=False)
                self._checks.check([site for site in self._sites.values() if site.generations], "end")
            self.write()
        except Exception as error:  # an internal error must not fail the program
            self.broken(error)
        self.leave()

    def write(self) -> None:
        """Write all results atomically."""
        if os.getpid() != self._process:
            return
        self._written = time.time()
        name = f"rank-{self._rank}"
        if self._spawned:
            if not any(loop.tops for loop in self._loops.values()) and not any(s.hits for s in self._sites.values()):
                return  # a worker that loads data
            self._rank = str(number if (number := rank_here()) is not None else self._rank or number_here())
            name = f"rank-spawned-{os.getpid()}"
        write(Path(self.plan.output), name, self.data())

    def data(self) -> dict[str, Any]:
        """All that was measured, as JSON."""
        meter = self._windows.meter
        return {
            "version": 1,
            "rank": int(self._rank) if self._rank.isdigit() else 0,
            "end": self._end,
            "seconds": time.time() - self._started,
            **environment(self.torch, meter),
            "unmeasurable": meter.reason(),
            "missing": self.missing,
            "sites": [site.data() for site in self._sites.values()],
            "loops": [loop.data() for loop in self._loops.values()],
            "located": self._windows.located(),
            "traced": [] if self._windows.traced is None else self._windows.traced.found,
            "peak": meter.peak(),
            "free": meter.free(),
            "peaks": self._peaks.data(),
            "timeline": self._timeline.data(),
            "losses": None if self._losses is None or self._end["kind"] == "running" else self._losses.data(),
        }
