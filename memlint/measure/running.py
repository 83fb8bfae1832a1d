"""Which loops are running in a thread: by their frames, so that generators and coroutines that wait are no loops around
those that run, and loops that were left by an exception or a return are none at all."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from types import CodeType, FrameType

#: runs of frames that are not running now: generators that wait, and those that will never go on
_MOST_WAITING = 256


class Run:
    """One run of a loop. ``frame`` is the identity of the frame that it runs in, ``code`` what that frame runs: the
    identity alone may be that of an older frame. ``count``: its iterations so far."""

    __slots__ = ("code", "count", "frame", "loop", "number")

    def __init__(self, loop: int, number: int, frame: FrameType) -> None:
        self.loop = loop
        self.number = number
        self.frame = id(frame)
        self.code: CodeType = frame.f_code
        self.count = 0


class Running(threading.local):
    """The loops that run in this thread, outermost first."""

    def __init__(self) -> None:
        self.runs: list[Run] = []
        self._waiting: dict[tuple[int, int], Run] = {}

    def enter(self, loop: int, around: Sequence[int], frame: FrameType, number: int) -> Run:
        """A loop is about to begin. ``around``: the loops of the same function that it stands in; ``number``: a name
        for this run of it."""
        self.settle(frame)
        here = id(frame)
        # other loops of this call were left without a word: by an exception
        self.runs = [run for run in self.runs if run.frame != here or run.loop in around]
        self._waiting.pop((loop, here), None)
        run = Run(loop, number, frame)
        self.runs.append(run)
        return run

    def top(self, loop: int, frame: FrameType) -> Run | None:
        """The run that this iteration is of; None where its beginning was not seen."""
        here = id(frame)
        depth = self._depth(loop, here)
        if depth is not None:
            if depth + 1 < len(self.runs):
                self._cut(depth + 1, here)
            return self.runs[depth]
        run = self._waiting.pop((loop, here), None)
        if run is not None:
            self.settle(frame)
            self.runs.append(run)
        return run

    def exit(self, loop: int, frame: FrameType) -> Run | None:
        """A loop has ended by itself or by break: its run, where it was known to run."""
        depth = self._depth(loop, id(frame))
        if depth is None:
            return None
        self._cut(depth + 1, id(frame))
        return self.runs.pop()

    def settle(self, frame: FrameType) -> None:
        """Put aside the runs of frames that do not run now."""
        if not self.runs:
            return
        calls: dict[int, CodeType] = {}
        around: FrameType | None = frame
        while around is not None:
            calls[id(around)] = around.f_code
            around = around.f_back
        kept: list[Run] = []
        for run in self.runs:
            if calls.get(run.frame) is run.code:
                kept.append(run)
            else:
                self._wait(run)
        self.runs = kept

    def _depth(self, loop: int, frame: int) -> int | None:
        for depth in range(len(self.runs) - 1, -1, -1):
            if self.runs[depth].loop == loop and self.runs[depth].frame == frame:
                return depth
        return None

    def _cut(self, depth: int, frame: int) -> None:
        for run in self.runs[depth:]:
            if run.frame != frame:
                self._wait(run)
        del self.runs[depth:]

    def _wait(self, run: Run) -> None:
        self._waiting[run.loop, run.frame] = run
        if len(self._waiting) > _MOST_WAITING:
            del self._waiting[next(iter(self._waiting))]
