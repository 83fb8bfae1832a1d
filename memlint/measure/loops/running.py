"""The running loops of a thread, by their frames: the loops of suspended generators and coroutines are not around
others, and loops that were left by an exception or a return have ended."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from types import CodeType, FrameType

#: the most runs of suspended frames, which may never continue
_MOST_WAITING = 256
#: the most runs before it is checked which of them still run
_MOST_UNSETTLED = 64
#: flags of code: a generator, a coroutine, an asynchronous generator
_CAN_WAIT = 0x20 | 0x80 | 0x200


class Run:
    """One run of a loop. ``frame``: the identity of its frame; ``code``: the code of that, as a later frame may have
    the same identity. ``count``: its iterations so far; ``first``: the iterations of its loop before it, if only those
    of the loop are counted."""

    __slots__ = ("code", "count", "first", "frame", "loop", "number")

    def __init__(self, loop: int, number: int, frame: FrameType) -> None:
        self.loop = loop
        self.number = number
        self.frame = id(frame)
        self.code: CodeType = frame.f_code
        self.count = 0
        self.first = 0


class Running(threading.local):
    """The running loops of this thread, outermost first."""

    def __init__(self) -> None:
        self.runs: list[Run] = []
        self._waiting: dict[tuple[int, int], Run] = {}

    def enter(self, loop: int, around: Sequence[int], frame: FrameType, number: int, *, settle: bool = True) -> Run:
        """A loop is about to begin. ``around``: the loops around it in the same function; ``number``: of this run;
        ``settle``: find which frames still run, which takes longer the deeper the stack is."""
        if settle or len(self.runs) > _MOST_UNSETTLED:
            self.settle(frame)
        here = id(frame)
        # other loops of this call were left by an exception
        self.runs = [run for run in self.runs if run.frame != here or run.loop in around]
        self._waiting.pop((loop, here), None)
        run = Run(loop, number, frame)
        self.runs.append(run)
        return run

    def top(self, loop: int, frame: FrameType) -> Run | None:
        """The run of this iteration; None if its start was not seen."""
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
        """A loop has ended by itself or by break. Returns its run; None if it was not known."""
        depth = self._depth(loop, id(frame))
        if depth is None:  # a generator that was resumed only to end
            return self._waiting.pop((loop, id(frame)), None)
        self._cut(depth + 1, id(frame))
        return self.runs.pop()

    def settle(self, frame: FrameType) -> None:
        """Set aside the runs of suspended frames, and take back those that were resumed."""
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
