"""Which loops are running in a thread: by their frames, so that generators and coroutines that wait are no loops around
those that run, and loops that were left by an exception or a return are none at all."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from types import CodeType, FrameType

#: runs of frames that are not running now: generators that wait, and those that will never go on
_MOST_WAITING = 256
#: runs that may be left by an exception or a return before it is looked which of them go on
_MOST_UNSETTLED = 64
#: flags of code: a generator, a coroutine, an asynchronous generator
_CAN_WAIT = 0x20 | 0x80 | 0x200


class Run:
    """One run of a loop. ``frame`` is the identity of the frame that it runs in, ``code`` what that frame runs: the
    identity alone may be that of an older frame. ``count``: its iterations so far; ``first``: those of its loop before
    it, where they are counted by the loop alone."""

    __slots__ = ("code", "count", "first", "frame", "loop", "number")

    def __init__(self, loop: int, number: int, frame: FrameType) -> None:
        self.loop = loop
        self.number = number
        self.frame = id(frame)
        self.code: CodeType = frame.f_code
        self.count = 0
        self.first = 0


class Running(threading.local):
    """The loops that run in this thread, outermost first."""

    def __init__(self) -> None:
        self.runs: list[Run] = []
        self._waiting: dict[tuple[int, int], Run] = {}

    def enter(self, loop: int, around: Sequence[int], frame: FrameType, number: int, *, settle: bool = True) -> Run:
        """A loop is about to begin. ``around``: the loops of the same function that it stands in; ``number``: a name
        for this run of it; ``settle``: tell which other frames run, which takes longer the deeper the stack is."""
        if settle or len(self.runs) > _MOST_UNSETTLED:
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
        if (loop, here) not in self._waiting:
            return None
        self.settle(frame)
        depth = self._depth(loop, here)
        return None if depth is None else self.runs[depth]

    def exit(self, loop: int, frame: FrameType) -> Run | None:
        """A loop has ended by itself or by break: its run, where it was known to run."""
        depth = self._depth(loop, id(frame))
        if depth is None:  # a generator that goes on only to end
            return self._waiting.pop((loop, id(frame)), None)
        self._cut(depth + 1, id(frame))
        return self.runs.pop()

    def settle(self, frame: FrameType) -> None:
        """Put aside the runs of frames that do not run now, and take up those that go on."""
        if not self.runs and not self._waiting:
            return
        calls: dict[int, tuple[int, CodeType]] = {}
        around: FrameType | None = frame
        while around is not None:
            calls[id(around)] = -len(calls), around.f_code
            around = around.f_back
        known = [*self.runs, *self._waiting.values()]
        runs: list[Run] = []
        self._waiting = {}
        for run in known:
            if calls.get(run.frame, (0, None))[1] is run.code:
                runs.append(run)
            else:
                self._wait(run)
        self.runs = sorted(runs, key=lambda run: (calls[run.frame][0], run.number))

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
        if not run.code.co_flags & _CAN_WAIT:
            return
        self._waiting[run.loop, run.frame] = run
        if len(self._waiting) > _MOST_WAITING:
            del self._waiting[next(iter(self._waiting))]
