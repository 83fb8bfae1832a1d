"""Lets the ranks of one host stop at the same iteration, by files beside their results.

If one rank stopped alone, the others would hang in their next collective, and a collective of memlint's own could hang
in the same way. So each rank writes what it has measured. The rank that finds that all is measured writes where to
stop: at a top of a loop that is a few iterations ahead."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import NamedTuple

from .files import read, write

#: iterations between the decision and the stop, as some ranks are ahead of others
_AHEAD = 8


class Agreement:
    """The agreement, for one rank of ``ranks`` that share ``folder``."""

    def __init__(self, folder: str, rank: int, ranks: int) -> None:
        self._folder = Path(folder)
        self._rank = rank
        self._ranks = ranks
        self._written: tuple[int, ...] | None = None
        self._stop: tuple[int, int] | None = None

    def reached(self, loop: int, tops: Mapping[int, int], unreached: Collection[int]) -> bool:
        """Whether this rank stops at this top of ``loop``. It has measured all but the sites ``unreached``, which it
        has never run. ``tops``: the number of tops of each loop."""
        if self._stop is None:
            if self._written != (unreached_now := tuple(sorted(unreached))):
                self._written = unreached_now
                write(self._folder, f"ready-{self._rank}", {"tops": list(tops.items()), "unreached": unreached_now})
                self._decide(loop, tops)
            self._stop = self._named()
        return self._stop is not None and loop == self._stop[0] and tops[loop] >= self._stop[1]

    def _decide(self, loop: int, tops: Mapping[int, int]) -> None:
        """Write where to stop, if all ranks together have measured everything."""
        rows = [row for rank in range(self._ranks) if (row := read(self._folder, f"ready-{rank}")) is not None]
        if len(rows) < self._ranks or set.intersection(*(set(row["unreached"]) for row in rows)):
            return
        each = [dict(map(tuple, row["tops"])) for row in rows]
        common = {number: max(one[number] for one in each) for number in each[0] if all(number in one for one in each)}
        if not common:
            return
        # a loop that every rank runs
        chosen = loop if loop in common else max(common, key=lambda number: common[number])
        write(self._folder, "stop", [chosen, max(common[chosen], tops.get(chosen, 0)) + _AHEAD], once=True)

    def _named(self) -> tuple[int, int] | None:
        found = read(self._folder, "stop")
        return None if found is None else (int(found[0]), int(found[1]))


class Alone:
    """The agreement for a rank of a program on several hosts: without a shared folder, no rank stops early."""

    def reached(self, loop: int, tops: Mapping[int, int], unreached: Collection[int]) -> bool:
        return False


class Launched(NamedTuple):
    """One process of several. ``rank``: its number in the whole program; ``local``: on its host, from 0; ``here``: the
    number of processes on its host; ``world``: on all hosts."""

    rank: int
    local: int
    here: int
    world: int


def launched(environment: Mapping[str, str]) -> Launched | None:
    """The process by the variables of torchrun or another launcher; None for a program of one process."""
    try:
        rank, world = int(environment["RANK"]), int(environment["WORLD_SIZE"])
        local = int(environment.get("LOCAL_RANK", rank))
        here = int(environment.get("LOCAL_WORLD_SIZE", world))
    except (KeyError, ValueError):
        return None
    return None if world < 2 else Launched(rank, local, here, world)


def agreement(folder: str) -> Agreement | Alone | None:
    """The agreement for this process; None for a program of one process."""
    one = launched(os.environ)
    if one is None:
        return None
    return Agreement(folder, one.rank, one.world) if one.here == one.world else Alone()
