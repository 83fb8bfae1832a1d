"""What loops hold at their tops: their windows, and where their growth comes from."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Mapping
from typing import Any

from .history import History
from .loops import LoopWatch, climbs, grows, survivors
from .meters import CpuMeter, Meter, host_meter
from .sites import SiteWatch


class Windows:
    """Reads the meters for each of ``loops``, and asks which of ``sites`` explains what has grown. ``meter`` reads
    nothing before torch has come."""

    def __init__(self, loops: Mapping[int, LoopWatch], sites: Iterable[SiteWatch]) -> None:
        self.meter: Meter = Meter()
        self.host = host_meter()
        self._loops = loops
        self._sites = sites
        self._history: History | None = None

    def begin(self, meter: Meter, torch: Any) -> None:
        """torch has come, and this reads what its tensors hold."""
        self.meter = meter
        if not isinstance(meter, CpuMeter):
            self._history = History(torch)

    def tick(self, tick: int) -> None:
        """The clock goes on: what is made from now on is of this time."""
        if isinstance(self.meter, CpuMeter):
            self.meter.ledger.tick = tick

    def top(self, watch: LoopWatch, tick: int) -> bool:
        """An iteration of a loop begins. Whether all that will be read of the loop has been read with it."""
        if watch.done:
            return False
        if watch.suspect and self._history is not None and self._history.loop == watch.number:
            self._history.step()
        over = watch.read(self.meter, self.host, tick) and self._is_over(watch)
        if over:
            self.close(watch)
        self._note_stacks()
        return over

    def forget(self, watch: LoopWatch) -> bool:
        """A run of a loop is over, or the next one begins: its window cannot go on. Whether that was the last of it."""
        if watch.done:
            return False
        if watch.suspect:
            self.close(watch)
            return True
        watch.forget()
        self._note_stacks()
        return False

    def close(self, watch: LoopWatch) -> None:
        """All that will be read of a loop has been read. What of its growth is explained by which site?"""
        watch.done = True
        if watch.suspect:
            gc.collect()
            if isinstance(self.meter, CpuMeter):
                watch.survivors = survivors(self.meter.ledger, watch.ticks, self._following())
            else:
                watch.settled = self.meter.read()
        if self._history is not None and self._history.loop == watch.number:
            self._history.step()
            self._history.end()

    def located(self) -> list[dict[str, Any]] | None:
        """The stacks that hold ever more, where the allocator notes them."""
        return None if self._history is None else self._history.found

    def _is_over(self, watch: LoopWatch) -> bool:
        """At the end of a window. What has grown in the first one is looked at again after another."""
        if watch.suspect:
            return True
        watch.suspect = climbs(watch.readings)
        if isinstance(self.meter, CpuMeter) and grows(self.meter.ledger, watch.ticks):
            gc.collect()
            watch.suspect = watch.suspect or grows(self.meter.ledger, watch.ticks)
        if watch.suspect and self._history is not None:
            self._history.begin(watch)
        return not watch.suspect

    def _following(self) -> dict[int, tuple[int, ...]]:
        """The sites that follow a storage, by its address."""
        following: dict[int, tuple[int, ...]] = {}
        for site in self._sites:
            for key in site.followed():
                following[key] = (*following.get(key, ()), site.number)
        return following

    def _note_stacks(self) -> None:
        if isinstance(self.meter, CpuMeter):
            self.meter.ledger.stacks = any(loop.open for loop in self._loops.values())
