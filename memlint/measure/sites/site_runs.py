"""What the hits of one site leave at the end of each run of the loop around it. Two runs of a short loop can show what
one window of a long loop shows."""

from __future__ import annotations

import functools
import os
import sys
import weakref
from collections.abc import Callable, Collection, Mapping
from types import CodeType, FrameType
from typing import Any

from ..loops.running import Run
from ..memory.meters import Bytes
from ..retention.old import Old
from ..stacks import HERE, frames_of
from .generations import Generation

#: the most runs that are followed; enough are runs and hits whose memory was kept
_MOST, ENOUGH, HITS_ENOUGH = 6, 2, 4
#: the most runs that are begun, some of which are left by an exception or have one hit only
_MOST_BEGUN = 12
#: the most hits of a run that are followed
_HITS = 150
#: gives the place at which something is being freed
Where = Callable[[], "dict[str, Any] | None"]


class Survivors:
    """What several hits have left at some time. It is still live for ``left`` of the ``kept`` hits. ``drops``: the
    number of hits after which some was freed; ``freed``: the place at which the first was."""

    def __init__(self, generations: list[Generation], clock: Callable[[], int], where: Where) -> None:
        """``clock``: gives the number of hits so far; ``where``: the place at which something is being freed."""
        self.drops = 0
        self.freed: dict[str, Any] | None = None
        dropped_at = -1

        def died(_: object) -> None:
            nonlocal dropped_at
            if not self.drops:
                self.freed = where()
            self.drops += clock() != dropped_at
            dropped_at = clock()
            self.left -= 1

        samples = [each.sample() for each in generations]
        self._watched = [weakref.ref(each, died) for each in samples if each is not None]
        self.kept = self.left = len(self._watched)

    @property
    def gone(self) -> bool:
        """Whether most of it was freed."""
        return 2 * self.left < self.kept

    def data(self) -> dict[str, Any]:
        """As JSON."""
        return {"kept": self.kept, "left": self.left, "drops": self.drops, "freed": self.freed}


class SiteRun:
    """The hits in one run of a loop. ``ends``: the check at its end; ``made``: the number of hits that kept anything,
    without the last one, which may still be in use; ``kept``: what these had left at the end. ``first``: it is the
    first run with a hit; ``used``: after its end, a backward pass has freed tensors that its graphs had saved."""

    def __init__(self, run: Run, *, first: bool) -> None:
        self.number = run.number
        self.first = first
        self.loop = run.loop
        self.code = run.code
        self.hits = 0
        self.generations: list[Generation] = []
        self.ends: dict[str, Any] | None = None
        self.made = 0
        self.kept: Survivors | None = None
        self.used = False
        self._saved: list[Any] = []

    def end(self, check: dict[str, Any], clock: Callable[[], int], paths: Collection[str]) -> None:
        """The run is over."""
        self.ends = check
        made = self.made_something()
        self.made = len(made)
        self.kept = Survivors(made, clock, lambda: where_freed(paths, self.code))
        middle = made[len(made) // 2].blocks if made else []
        for reference, _ in middle[1:]:
            storage = reference()
            if storage is not None:
                self._saved.append(weakref.ref(storage, self._note_use(middle[0][0])))

    def _note_use(self, value: Callable[[], Any]) -> Callable[[object], None]:
        def died(_: object) -> None:
            self.used = self.used or (value() is not None and _is_in_backward())

        return died

    def made_something(self) -> list[Generation]:
        """The hits that kept anything, without the last one."""
        return [each for each in self.generations[:-1] if each.kept_something]

    @property
    def keeps(self) -> int:
        """The number of hits whose memory was live at the end of the run; 0 unless that is all of them."""
        return self.made if self.kept is not None and self.kept.kept == self.made else 0

    def data(self) -> dict[str, Any]:
        """All that was measured, as JSON."""
        return {
            **(self.ends or {}),
            **({} if self.kept is None else self.kept.data()),
            "run": self.number,
            "first": self.first,
            "loop": self.loop,
            "function": self.code.co_name,
            "hits": self.hits,
            "iterations": [list(each.iteration) for each in self.generations],
            "made": self.made,
            "used": self.used,
        }


class SiteRuns:
    """The runs of one site that are followed."""

    def __init__(self) -> None:
        self.runs: list[SiteRun] = []
        self.current: SiteRun | None = None
        #: the storages that existed at the start of the current or next run; None for the first
        self.old: Old | None = None
        self._hits = 0
        self._seen = -1
        self._begun = 0
        self._looks = 0

    @property
    def keep(self) -> bool:
        """Whether enough runs have kept all that their hits left."""
        keeping = [run.keeps for run in self.runs if run.keeps]
        return len(keeping) >= ENOUGH and sum(keeping) >= HITS_ENOUGH

    @property
    def decided(self) -> bool:
        """Whether no more runs are needed."""
        return self.keep or len(self.runs) >= _MOST or self._begun >= _MOST_BEGUN

    @property
    def following(self) -> bool:
        """Whether hits of the current run are still followed."""
        return self.current is not None and len(self.current.generations) < _HITS

    def pending(self, *, stays: bool) -> bool:
        """Whether more hits may change the result: all that the current run has left is live, or was at the end of the
        last run. ``stays``: the window has shown that it stays, so that only its release matters."""
        keeping = [run.kept for run in self.runs if run.kept is not None and run.keeps]
        gone = any(kept.drops for kept in keeping)
        if self.decided:  # several episodes may be used together
            return self.keep and not gone
        if stays and gone:
            return False
        if self.current is not None:
            return all(each.stays() for each in self.current.made_something())
        return bool(keeping)

    def begins(self, look: Callable[[], Old]) -> None:
        """A run of the loop begins. ``look``: lists the existing storages, which is slow, so only for the first runs:
        many may never reach the site."""
        self._looks += 1
        if self._looks <= 2 * _MOST_BEGUN:
            self.old = look()

    def hit(self, run: Run) -> bool:
        """A hit in a run of a loop. Returns whether to follow its values."""
        self._hits += 1
        current = self.current
        if current is None or current.number != run.number:
            # the previous run was left by an exception, and is not used
            if self.decided or run.number == self._seen:
                self.current = None
                return False
            self._seen = run.number
            self._begun += 1
            current = self.current = SiteRun(run, first=self._begun == 1)
        current.hits += 1
        return len(current.generations) < _HITS

    def add(self, generation: Generation) -> None:
        """Add what the current hit keeps."""
        if self.current is not None:
            self.current.generations.append(generation)

    def end(self, check: Callable[[SiteRun], dict[str, Any]], paths: Collection[str]) -> None:
        """The current run is over. ``check``: gives what is live."""
        run, self.current = self.current, None
        if run is None or len(run.generations) < 2:  # a single hit may still be in use
            return
        run.end(check(run), lambda: self._hits, paths)
        self.runs.append(run)

    def generations(self) -> list[Generation]:
        """All generations that are followed."""
        current = [] if self.current is None else self.current.generations
        return [each for run in self.runs for each in run.generations] + current

    def data(self) -> list[dict[str, Any]]:
        """All that was measured, as JSON."""
        return [run.data() for run in self.runs]


def where_freed(
    paths: Collection[str], code: CodeType | None = None, around: tuple[CodeType, ...] = ()
) -> dict[str, Any] | None:
    """The innermost place on the stack in the program's files ``paths``, and whether the hits' function has
    ``returned``: that of ``code``, or else what a library ran in ``around``, the stack of a hit. None without such a
    place, or in a garbage collection by memlint."""
    try:
        frame: FrameType | None = sys._getframe(3)  # without this function, its caller and the weakref callback
    except ValueError:  # a thread of torch's own
        return None
    stack = list(frames_of(frame))
    place = next((each for each in stack if _is_ours(each.f_code) or _is_the_programs(each.f_code, paths)), None)
    if place is None or _is_ours(place.f_code):
        return None
    codes = [each.f_code for each in reversed(stack)]
    if code is not None:
        returned = code not in codes
    else:
        same = [one for one, other in zip(codes, around, strict=False) if one is other]
        returned = all(_is_ours(each, everything=True) or _is_the_programs(each, paths) for each in same)
    return {
        "path": place.f_code.co_filename,
        "line": place.f_lineno,
        "function": place.f_code.co_name,
        "returned": returned,
    }


def _is_in_backward() -> bool:
    """Whether autograd runs, on this stack or in a thread of its own."""
    try:
        frame: FrameType | None = sys._getframe(2)
    except ValueError:
        return True
    return any(each.f_code.co_name == "_engine_run_backward" for each in frames_of(frame))


def stack_of(frame: FrameType) -> tuple[CodeType, ...]:
    """The code of a stack, outermost first."""
    return tuple(each.f_code for each in frames_of(frame))[::-1]


def _is_ours(code: CodeType, *, everything: bool = False) -> bool:
    """Whether code is memlint's. ``everything``: also what runs the program."""
    name = code.co_filename
    return name.startswith(HERE) and (everything or os.path.basename(name) != "launch.py")


@functools.cache
def _real(path: str) -> str:
    return os.path.realpath(path)


def _is_the_programs(code: CodeType, paths: Collection[str]) -> bool:
    return _real(code.co_filename) in paths


def check_of(
    when: str,
    hits: int,
    before: list[Bytes],
    generations: list[Generation],
    elsewhere: Mapping[int, int],
    old: Collection[int] = (),
) -> dict[str, Any]:
    """What is live of generations, as JSON. ``before``: the same before the garbage collection; ``elsewhere``: the
    addresses of storages that count for another site, with its number; ``old``: those of storages that do not count."""
    others = {*elsewhere, *old}
    return {
        "when": when,
        "hits": hits,
        "before": before,
        "alive": [each.alive(old) for each in generations],
        "nodes": [each.nodes_alive() for each in generations],
        "own": [sum(each.alive(others).values()) for each in generations],
        # the numbers of sites that keep some of it as well
        "shared_with": [
            sorted({elsewhere[key] for key in each.addresses() if key in elsewhere}) for each in generations
        ],
    }
