"""The windows of loops: readings at their tops, and the origin of their growth."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ..loops.counted import CountedRuns
from ..loops.history import History
from ..loops.loops import LoopWatch, climbs, grows, survivors
from ..loops.short import MOST, FollowedRuns, ShortRuns
from ..memory.host import beside_tensors, host_meter, rises_in_workers, rises_on_host
from ..memory.meters import CpuMeter, Meter
from ..memory.traced import Traced
from ..memory.tracker import Born, Frame
from ..plan import Plan
from ..retention.owners import Owners, Target
from ..sites.sites import SiteWatch


class Windows:
    """Reads the meters for each of ``loops``, and finds which of ``sites`` explain the growth. ``meter`` reads nothing
    before torch is imported."""

    def __init__(self, loops: Mapping[int, LoopWatch], sites: Iterable[SiteWatch], plan: Plan) -> None:
        self.meter: Meter = Meter()
        self.host = host_meter()
        self._loops = loops
        self.traced = Traced() if plan.trace_host else None
        #: whether storages are followed to the end of the program, for a chart or a comparison
        self._follows = plan.picture or plan.seed is not None
        self._shortest = plan.warmup + plan.window
        self._sites = sites
        self._history: History | None = None
        self._waiting: list[LoopWatch] = []
        self._owners: Owners | None = None
        self._clock = 0
        #: the sites that follow storages allocated at a stack
        self._places: dict[tuple[Frame, ...], set[int]] = {}
        #: whether the program still runs
        self.running = True

    def begin(self, meter: Meter, torch: Any) -> None:
        """torch is imported: read this meter."""
        self.meter = meter
        self._owners = Owners(torch)
        if not isinstance(meter, CpuMeter):
            self._history = History(torch)

    def ask(self, wanted: Mapping[int, Sequence[Target]]) -> dict[int, list[dict[str, Any]]]:
        """The holders of each group of targets, as far as they are known."""
        return {} if self._owners is None else self._owners.of(wanted, frames=self.running)

    def tick(self, tick: int) -> None:
        """Set the clock: storages that are allocated from now on have this tick."""
        self._clock = tick
        if isinstance(self.meter, CpuMeter):
            self.meter.ledger.tick = tick

    def top(self, watch: LoopWatch, tick: int) -> bool:
        """An iteration of a loop begins. Returns whether the measurement of a loop is complete with it."""
        watch.tick = tick
        settled = False
        if watch.tops == 1 or not self._waiting:
            self._resume()
        for each in self._waiting:
            settled = self._look_again(each, watch, tick) or settled
        if self._history is not None and self._history.loop == watch.number:
            self._history.step()
        if watch.done or watch.waits is not None:
            return settled
        if isinstance(self.meter, CpuMeter) and self.meter.closed:
            watch.forget()
            return settled
        if len(watch.turns) <= self._shortest:
            self._begin_short(watch)
            watch.turns.append(tick)
        over = watch.read(self.meter, self.host, tick) and self._is_over(watch)
        if over:
            self._window_over(watch, tick)
        self._note_stacks()
        if over or settled:
            self._pause()
        return over or settled

    def _pause(self) -> None:
        """Stop counting new storages while all loops only wait for the release of earlier ones."""
        if not isinstance(self.meter, CpuMeter) or self._follows or not self._waiting:
            return
        ledger = self.meter.ledger
        read = [loop for loop in self._loops.values() if loop.done or loop.waits is not None]
        around = {outer for loop in read for outer in loop.outer}
        left = [loop for loop in self._loops.values() if loop.tops and loop not in read and loop.number not in around]
        if all(loop.runs > 1 and loop.longest <= self._shortest for loop in left) and all(
            grows(ledger, loop.ticks) for loop in self._waiting
        ):
            self.meter.close_if_outermost()

    def _resume(self) -> None:
        if isinstance(self.meter, CpuMeter):
            self.meter.open_if_outermost()

    def forget(self, watch: LoopWatch, tick: int) -> bool:
        """A run of a loop is over, or the next one begins: end its window. Returns whether its short runs show
        growth."""
        if watch.done:
            return False
        if watch.waits is not None:
            watch.run_ended = True
            return False
        if watch.suspect:
            if self._history is not None and self._history.loop == watch.number:
                self._history.step()
            self._window_over(watch, tick)
            watch.run_ended = True
            return False
        known = watch.short.runs
        self._end_short(watch)
        watch.forget()
        self._note_stacks()
        return watch.short.runs != known and watch.short.grows

    def _begin_short(self, watch: LoopWatch) -> None:
        """An iteration begins, in a run that may be too short for a window."""
        if type(watch.short) is ShortRuns:
            if isinstance(self.meter, CpuMeter):
                watch.short = FollowedRuns()
            elif watch.outer:  # what straight-line code keeps of each call is not growth
                watch.short = CountedRuns()
        if isinstance(watch.short, CountedRuns) and watch.short.runs < MOST:
            watch.short.top(self.meter.read())
            if not watch.turns and watch.short.suspect and self._history is not None:
                self._history.begin_short(watch)

    def _end_short(self, watch: LoopWatch) -> None:
        """A run is over that was too short for a window: compare it with other short runs."""
        short, meter = watch.short, self.meter
        if isinstance(short, CountedRuns):
            if watch.turns and self._history is not None and self._history.loop == watch.number:
                self._history.step()
                self._history.end(self.ask)
            short.end(meter.read(), self._shortest)
        if not isinstance(short, FollowedRuns) or not isinstance(meter, CpuMeter) or len(watch.turns) > self._shortest:
            return
        ledger = meter.ledger

        def look(ticks: list[int], counts: Callable[[Born], bool]) -> dict[str, Any]:
            return survivors(ledger, ticks, self._clock + 2, self._following(), self.ask, self._places, counts)

        short.end(ledger, watch.turns, watch.code, look)

    def look_around(self, number: int) -> None:
        """A loop has ended: check what the short runs in it have left."""
        inside = [loop.short for loop in self._loops.values() if number in loop.outer and not loop.done]
        held = self.meter.read() if inside else {}
        for short in inside:
            short.look(held)

    def _window_over(self, watch: LoopWatch, tick: int) -> None:
        """A window is complete. What has grown may still be released at the end of this run or of later ones."""
        if self._history is not None and self._history.loop == watch.number and self._history.tells:
            self._history.end(self.ask)  # else it goes on in the next runs
        if self.traced is not None:
            self.traced.end(watch.number, max(1, len(watch.readings) - 1 - watch.window))
        if watch.suspect:
            watch.wait(tick)
            self._waiting.append(watch)
        else:
            watch.done = True

    def _look_again(self, watch: LoopWatch, top: LoopWatch, tick: int) -> bool:
        """At a top: check in the next run of a loop whether its growth is still there. Returns whether the measurement
        of the loop is complete."""
        waits = watch.waits
        assert waits is not None
        gone = False
        if top is watch and watch.runs > waits.runs and watch.looked_at < watch.runs:
            watch.looked_at = watch.runs
            gc.collect()
            watch.settle(self.meter.read(), self._on_host())
            alive = isinstance(self.meter, CpuMeter) and grows(self.meter.ledger, watch.ticks)
            gone = not alive and watch.is_given_back()
            self._note_survivors(watch, new=not alive)
        if not gone and not waits.is_over(tick, watch.runs, watch.run_ended):
            return False
        self.close(watch)
        return True

    def close(self, watch: LoopWatch) -> None:
        """Complete the measurement of a loop, and find the sites that explain its growth."""
        watch.done = True
        self._waiting = [each for each in self._waiting if each is not watch]
        # what was there in a later run is growth, even if the end of the program has released it
        if watch.suspect and (self.running or not watch.looked_at):
            gc.collect()
            watch.settle(self.meter.read(), self._on_host())
            self._note_survivors(watch, new=True)
        if self._history is not None and self._history.loop == watch.number:
            self._history.step()
            self._history.end(self.ask)
        self._note_stacks()

    def _note_survivors(self, watch: LoopWatch, *, new: bool) -> None:
        """Note the live storages of a window. Unless ``new``, earlier notes are kept."""
        if isinstance(self.meter, CpuMeter) and (new or watch.survivors is None):
            watch.survivors = survivors(
                self.meter.ledger, watch.ticks, watch.tick, self._following(), self.ask, self._places
            )

    def located(self) -> list[dict[str, Any]] | None:
        """The growing stacks; None if the allocator does not record stacks."""
        return None if self._history is None else self._history.found

    def _on_host(self) -> int | None:
        """Host memory beside tensors in bytes; None if unknown."""
        return None if self.host is None else beside_tensors({"requested": self.meter.read(), "host": self.host()})

    def _is_over(self, watch: LoopWatch) -> bool:
        """At the end of a window, whether it is the last one: growth in the first is checked in a second."""
        if watch.suspect:
            return True
        watch.suspect = climbs(watch.readings) or rises_on_host(watch.readings) or rises_in_workers(watch.readings)
        if isinstance(self.meter, CpuMeter) and grows(self.meter.ledger, watch.ticks):
            gc.collect()
            watch.suspect = watch.suspect or grows(self.meter.ledger, watch.ticks)
        if watch.suspect and self._history is not None:
            self._history.begin(watch)
        if self.traced is not None and rises_on_host(watch.readings):
            self.traced.begin(watch.number)
        return not watch.suspect

    def _following(self) -> dict[int, tuple[int, ...]]:
        """The numbers of the sites that follow each storage, by its address."""
        following: dict[int, tuple[int, ...]] = {}
        for site in self._sites:
            for key in site.followed():
                following[key] = (*following.get(key, ()), site.number)
        return following

    def _note_stacks(self) -> None:
        if isinstance(self.meter, CpuMeter):
            self.meter.ledger.stacks = any(loop.open for loop in self._loops.values())
