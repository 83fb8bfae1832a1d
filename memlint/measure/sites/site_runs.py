"""What the hits of one place leave until the run of the loop around them ends, run by run: a loop of five iterations
says in two runs what a long one says in one."""

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

#: so many runs are followed, until so many of them have kept what so many hits left
_MOST, ENOUGH, HITS_ENOUGH = 6, 2, 4
#: and so many are begun, of which some were left without a word or had one hit
_MOST_BEGUN = 12
#: hits of a run that are followed; of more, the rest is said to be as they were
_HITS = 150
#: says where something is freed that is freed now
Where = Callable[[], "dict[str, Any] | None"]


class Survivors:
    """What several hits have left at some time. Of ``left`` of the ``kept`` hits it is still there; ``drops``: between
    how many hits it went; ``freed``: where the first of it was."""

    def __init__(self, generations: list[Generation], clock: Callable[[], int], where: Where) -> None:
        """``clock``: the hits so far."""
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
        """Whether most of it is."""
        return 2 * self.left < self.kept

    def data(self) -> dict[str, Any]:
        """As JSON."""
        return {"kept": self.kept, "left": self.left, "drops": self.drops, "freed": self.freed}


class SiteRun:
    """The hits in one run of a loop. ``ends``: what was alive when the run ended, a check; ``kept``: what was left then
    of the hits but the last, whose values may still be in use, of ``made`` of them that kept anything. ``first``: the
    very first hit is in it; ``used``: a backward pass has freed what its graphs had saved, once the run was over."""

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
        """The hits but the last that kept anything at all."""
        return [each for each in self.generations[:-1] if each.kept_something]

    @property
    def keeps(self) -> int:
        """The hits of which something was there when the run ended, if that is all of them."""
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
        #: the storages that there were when the run began that comes or goes on; None for the first
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
        """Whether hits of the run that goes on are still noted."""
        return self.current is not None and len(self.current.generations) < _HITS

    def pending(self, *, stays: bool) -> bool:
        """Whether what comes may say more: all that the run has left so far is there, or was when the last one ended.
        ``stays``: it is known to stay, so that only its end is of interest."""
        keeping = [run.kept for run in self.runs if run.kept is not None and run.keeps]
        gone = any(kept.drops for kept in keeping)
        if self.decided:  # several episodes may be used at once
            return self.keep and not gone
        if stays and gone:
            return False
        if self.current is not None:
            return all(each.stays() for each in self.current.made_something())
        return bool(keeping)

    def begins(self, look: Callable[[], Old]) -> None:
        """A run of the loop begins, of which there may be many that never come to the place. ``look``: at what there
        is, which takes a while."""
        self._looks += 1
        if self._looks <= 2 * _MOST_BEGUN:
            self.old = look()

    def hit(self, run: Run) -> bool:
        """A hit in a run of a loop. Whether its values are to be followed."""
        self._hits += 1
        current = self.current
        if current is None or current.number != run.number:
            # one that was left without a word, by an exception, says nothing
            if self.decided or run.number == self._seen:
                self.current = None
                return False
            self._seen = run.number
            self._begun += 1
            current = self.current = SiteRun(run, first=self._begun == 1)
        current.hits += 1
        return len(current.generations) < _HITS

    def add(self, generation: Generation) -> None:
        """What the hit keeps."""
        if self.current is not None:
            self.current.generations.append(generation)

    def end(self, check: Callable[[SiteRun], dict[str, Any]], paths: Collection[str]) -> None:
        """The current run is over. ``check``: says what is alive."""
        run, self.current = self.current, None
        if run is None or len(run.generations) < 2:  # one alone is in use
            return
        run.end(check(run), lambda: self._hits, paths)
        self.runs.append(run)

    def generations(self) -> list[Generation]:
        """All that are followed."""
        current = [] if self.current is None else self.current.generations
        return [each for run in self.runs for each in run.generations] + current

    def data(self) -> list[dict[str, Any]]:
        """All that was measured, as JSON."""
        return [run.data() for run in self.runs]


def where_freed(
    paths: Collection[str], code: CodeType | None = None, around: tuple[CodeType, ...] = ()
) -> dict[str, Any] | None:
    """The innermost place of the program on the stack, of the files at ``paths``, and whether what the hits were made
    in has ``returned``: the function of ``code``, or what a library ran in ``around``, the stack of a hit. None where
    memlint has had garbage collected."""
    try:
        frame: FrameType | None = sys._getframe(3)  # behind this, what asks for it and what is told of the death
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
    """Whether autograd runs: below Python's call of it, or in a thread of its own."""
    try:
        frame: FrameType | None = sys._getframe(2)
    except ValueError:
        return True
    return any(each.f_code.co_name == "_engine_run_backward" for each in frames_of(frame))


def stack_of(frame: FrameType) -> tuple[CodeType, ...]:
    """What runs, outermost first."""
    return tuple(each.f_code for each in frames_of(frame))[::-1]


def _is_ours(code: CodeType, *, everything: bool = False) -> bool:
    """Whether it is memlint's: a probe, or (``everything``) what runs the program."""
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
    """What is alive of generations, as JSON. ``before``: what was, before garbage was collected; ``elsewhere``: the
    storages that count for another site, with its number; ``old``: those that count for nothing."""
    others = {*elsewhere, *old}
    return {
        "when": when,
        "hits": hits,
        "before": before,
        "alive": [each.alive(old) for each in generations],
        "nodes": [each.nodes_alive() for each in generations],
        "own": [sum(each.alive(others).values()) for each in generations],
        # a name for each site that has some of it as well
        "shared_with": [
            sorted({elsewhere[key] for key in each.addresses() if key in elsewhere}) for each in generations
        ],
    }
