"""Lets the ranks of one host stop at the same iteration, by files beside their results.

A rank that stops alone leaves the others waiting in their next collective, and a collective of memlint's own could hang
in the same way; so each rank tells what it has measured, and the one that sees that all is measured names a top of a
loop that lies a few iterations ahead.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

#: how many iterations lie between the decision and the stop: the host may be as far ahead of a rank that waits for its
#: device
_AHEAD = 8


class Agreement:
    """One rank's part in it. ``ranks`` of them share ``folder``."""

    def __init__(self, folder: str, rank: int, ranks: int) -> None:
        self._folder = Path(folder)
        self._rank = rank
        self._ranks = ranks
        self._told: tuple[int, ...] | None = None
        self._stop: tuple[int, int] | None = None

    def reached(self, loop: int, tops: Mapping[int, int], unreached: Collection[int]) -> bool:
        """Whether the ranks stop here: at a top of ``loop``, by a rank that has measured all but the sites
        ``unreached``, which it has never run. ``tops``: how often each loop has come to its top."""
        if self._stop is None:
            if self._told != (told := tuple(sorted(unreached))):
                self._told = told
                self._write(f"ready-{self._rank}", {"tops": list(tops.items()), "unreached": told})
                self._decide(loop, tops)
            self._stop = self._named()
        return self._stop is not None and loop == self._stop[0] and tops[loop] >= self._stop[1]

    def _decide(self, loop: int, tops: Mapping[int, int]) -> None:
        """Name the stop, if all ranks together have measured everything."""
        rows = [row for rank in range(self._ranks) if (row := self._read(f"ready-{rank}")) is not None]
        if len(rows) < self._ranks or set.intersection(*(set(row["unreached"]) for row in rows)):
            return
        each = [dict(map(tuple, row["tops"])) for row in rows]
        common = {number: max(one[number] for one in each) for number in each[0] if all(number in one for one in each)}
        if not common:
            return
        # a loop that every rank runs: others never come to the top of one that is this rank's alone
        chosen = loop if loop in common else max(common, key=lambda number: common[number])
        self._write("stop", [chosen, max(common[chosen], tops.get(chosen, 0)) + _AHEAD], once=True)

    def _named(self) -> tuple[int, int] | None:
        found = self._read("stop")
        return None if found is None else (int(found[0]), int(found[1]))

    def _write(self, name: str, data: Any, *, once: bool = False) -> None:
        """Write a file whole; ``once``: unless another rank was quicker."""
        beside = self._folder / f"{name}.json.{self._rank}"
        beside.write_text(json.dumps(data), encoding="utf-8")
        if not once:
            beside.replace(self._folder / f"{name}.json")
            return
        with contextlib.suppress(FileExistsError):
            os.link(beside, self._folder / f"{name}.json")
        beside.unlink()

    def _read(self, name: str) -> Any:
        try:
            return json.loads((self._folder / f"{name}.json").read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None


class Alone:
    """The rank of a program that runs on several hosts: these share no folder, so that none may stop before the end."""

    def reached(self, loop: int, tops: Mapping[int, int], unreached: Collection[int]) -> bool:
        return False


def agreement(folder: str) -> Agreement | Alone | None:
    """The part of this process, by the environment that torchrun gives; None for a program of one process."""
    try:
        rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        here = int(os.environ.get("LOCAL_WORLD_SIZE", ranks))
    except (KeyError, ValueError):
        return None
    if ranks < 2:
        return None
    return Agreement(folder, rank, ranks) if here == ranks else Alone()
