"""Decides when all is measured: at once if more hits would change nothing, else after waiting for sites and loops that
are reached too rarely or never."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping

from ..loops.clocks import ClockWatch
from ..loops.loops import LoopWatch
from ..sites.sites import SiteWatch

#: iterations of a loop in which a site must be reached at least once, unless an option disables it
_ENOUGH = 100
#: ticks (iterations of any loop) and seconds to wait: for unmeasured sites, since one was last reached; for loops
#: without a finding; for what becomes of memory that a measured site has kept
_FOR_SITES = 5_000, 120.0
_FOR_LOOPS = 1_000, 30.0
_FOR_ENDS = 1_000, 10.0
#: hits of that site to wait for
_HITS = 300
#: hits of a site without a loop of the program around it, and seconds since it was measured
_HITS_ALONE, _FOR_ALONE = 1_000, 60.0


class Patience:
    """Decides whether all is measured. ``in_loops``: the loop around a site; ``shortest``: iterations of a window."""

    def __init__(
        self, sites: Mapping[int, SiteWatch], loops: Mapping[int, LoopWatch], in_loops: Mapping[int, int], shortest: int
    ) -> None:
        self._sites = sites
        self._loops = loops
        self._in_loops = in_loops
        self._shortest = shortest
        self._since: dict[object, tuple[int, float, int]] = {}
        self._asked = 0

    def all_measured(self, tick: int, *, alone: bool) -> bool:
        """Whether every site and loop is measured, or has been waited for long enough. ``alone``: no other process
        measures the sites that this one does not reach."""
        self._asked = tick
        awaited = {
            site.number: site.hits
            for site in self._sites.values()
            if not self._measured(site, tick) and (site.hits or (alone and not self._is_passed(site)))
        }
        if awaited and not self._is_over("sites", tick, sum(awaited.values()), _FOR_SITES):
            return False
        unsettled = {loop.number: loop.tops for loop in self._unsettled()}
        if any(unsettled.values()) and not self._is_over("loops", tick, sum(unsettled.values()), _FOR_SITES):
            return False
        short = [loop.short.runs for loop in self._loops.values() if loop.short.undecided and not loop.done]
        if short and not self._is_over("short", tick, sum(short), _FOR_ENDS):
            return False
        if self._waits_to_train() and not self._is_over("training", tick, 0, _FOR_LOOPS):
            return False
        if self._sites:
            return True
        if not any(loop.done for loop in self._loops.values()) and self._loops:
            return self._is_over("nothing", tick, 0, _FOR_SITES)
        if self._may_have_others() and not self._is_over("others", tick, len(self._loops), _FOR_LOOPS):
            return False
        return not unsettled or self._is_over("unreached", tick, len(unsettled), _FOR_LOOPS)

    def is_due(self, tick: int) -> bool:
        """Whether enough ticks have passed to ask `all_measured` again."""
        return tick - self._asked >= 20

    def _unsettled(self) -> Iterable[LoopWatch]:
        """The loops that are not measured yet, without those that are too short and those around measured loops."""
        done: Collection[int] = {outer for loop in self._loops.values() if loop.done for outer in loop.outer}
        for loop in self._loops.values():
            if loop.done or loop.number in done:
                continue
            if self._sites and (loop.holds_loops or not loop.tops):
                continue
            if (
                not loop.suspect
                and not loop.short.undecided
                and (loop.whole_runs or loop.runs > 1)
                and loop.longest <= self._shortest
            ):
                continue
            yield loop

    def _waits_to_train(self) -> bool:
        """Whether a training loop around other loops is not measured yet: a loop in it, such as a rare evaluation, was
        measured first."""
        return any(loop.trains and loop.holds_loops and not loop.done for loop in self._loops.values())

    def _may_have_others(self) -> bool:
        """Whether libraries may have loops that have not begun yet: until one of the known ones begins again."""
        libraries = [loop for loop in self._loops.values() if isinstance(loop, ClockWatch)]
        return bool(libraries) and all(loop.runs < 2 for loop in libraries)

    def _is_passed(self, site: SiteWatch) -> bool:
        """Whether the loop around a site has run completely several times without reaching it, as an option is off."""
        loop = self._loops.get(self._in_loops.get(site.number, 0))
        return loop is not None and loop.whole_runs > 1 and loop.tops >= _ENOUGH

    def _measured(self, site: SiteWatch, tick: int) -> bool:
        """Whether more hits would not change the verdict: nothing survives, or it survived a second window or the ends
        of two runs, and was followed for some time after that."""
        if not site.measured and not site.runs.keep:
            return False
        alone = not site.loops and site.stays
        if alone and site.emptied is not None and site.emptied.drops:
            return True
        if not alone and not site.runs.pending(stays=site.stays):
            return True
        started = self._since.setdefault(site, (tick, time.monotonic(), site.hits))
        if alone:  # the library may empty it at the end of an epoch
            return site.hits > _HITS_ALONE or time.monotonic() - started[1] > _FOR_ALONE
        return site.hits - started[2] > _HITS or _past(started, tick, _FOR_ENDS)

    def _is_over(self, what: str, tick: int, progress: int, most: tuple[int, float]) -> bool:
        """Whether ``progress`` has been the same for longer than ``most``, in ticks or seconds."""
        started = self._since.get(what)
        if started is None or started[2] != progress:
            started = self._since[what] = (tick, time.monotonic(), progress)
        return _past(started, tick, most)


def _past(started: tuple[int, float, int], tick: int, most: tuple[int, float]) -> bool:
    return tick - started[0] > most[0] or time.monotonic() - started[1] > most[1]
