"""Loops of libraries, for programs without a loop of their own: batches that a trainer draws from a `DataLoader`, steps
of an optimizer, and calls of a model in an evaluation. Each is a tick, which counts as the top of a loop.
"""

from __future__ import annotations

import functools
import importlib
import itertools
import os
import sys
import sysconfig
import threading
import weakref
from collections.abc import Callable, Collection
from types import CodeType, FrameType
from typing import Any

from ..stacks import HERE, PACKAGES, frames_of
from .loops import LoopWatch
from .running import Run, Running

#: the kinds of ticks; the numbers of their loops are negative, those of the plan positive
BATCHES, STEPS, CALLS = "batches", "steps", "calls"
_NUMBERS = {STEPS: -1, CALLS: -2}
_FIRST_OF_BATCHES = -10
#: the most loops over batches that are distinguished, in all and for one stack
_MOST_BATCHES, _MOST_DATA = 16, 4
#: with so many ticks in one iteration of the program's own loop, a library's loop runs in it
_FEW = 3

#: called by a hook with the kind of tick, its subject, and the calling frame
Turn = Callable[[str, Any, FrameType], None]


class ClockWatch(LoopWatch):
    """A loop of a library. ``kind``: of its ticks; ``path`` and ``line``: where the program calls the library;
    ``trains``: whether an optimizer steps in it."""

    def __init__(self, number: int, kind: str, warmup: int, window: int) -> None:
        super().__init__(number, warmup, window)
        self.kind = kind
        self.path: str | None = None
        self.line = 0
        self.trains = kind == STEPS

    def data(self) -> dict[str, Any]:
        clock = {"kind": self.kind, "path": self.path, "line": self.line, "trains": self.trains}
        return {**super().data(), "clock": clock}


class _Subject:
    """The state of what ticks: a loader's iterator, an optimizer, the models. ``own``: the iteration of the program's
    own loop in which it ticked last; ``times``: its ticks in that."""

    def __init__(self) -> None:
        self.run: Run | None = None
        self.own: tuple[int, int] | None = None
        self.times = 0
        #: ticks of an optimizer since the one that is the clock has ticked
        self.since = 0


class Clocks:
    """Decides which ticks are iterations. Found loops are added to ``loops``; ``number``: gives the number of a new
    run."""

    def __init__(
        self,
        loops: dict[int, LoopWatch],
        running: Running,
        own: Collection[str],
        windows: tuple[int, int],
        number: Callable[[], int],
    ) -> None:
        self._loops = loops
        self._running = running
        self._windows = windows
        self._number = number
        self._code = _Code(own)
        self._iterators: weakref.WeakKeyDictionary[Any, _Subject] = weakref.WeakKeyDictionary()
        self._optimizers: weakref.WeakKeyDictionary[Any, _Subject] = weakref.WeakKeyDictionary()
        self._single: dict[Any, _Subject] = {}
        self._batches: dict[tuple[CodeType, ...], dict[int, int]] = {}
        #: kinds of ticks, with the program's own loops in whose iterations a library's loop runs
        self._inside: set[tuple[Any, int]] = set()
        #: running loops over batches, outermost first, with their iterators
        self._going: list[tuple[Run, Any]] = []
        #: whether a loop over batches has just ended: a library that prefetches still uses the last batch
        self._drawn_ahead = False
        self._over: list[Run] = []
        self._clock: Any = None
        self._last: Run | None = None
        self._undo: list[Callable[[], None]] = []
        self._follow_models: Callable[[], Callable[[], None]] | None = None
        #: removes the hooks on calls of models
        self._leave_models: Callable[[], None] | None = None

    # hooks

    def install(self, torch: Any, turn: Turn) -> None:
        """Register ``turn`` for every tick."""
        self._undo += [_follow_optimizers(turn), _follow_batches(turn, self.exhausted)]
        self._follow_models = functools.partial(_follow_models, torch, turn)
        if not self._loops:
            self._watch_models()

    def _watch_models(self) -> None:
        """Follow calls of models, once a library has a loop: that takes some time at each call of a module."""
        if self._follow_models is not None and self._leave_models is None:
            self._leave_models = self._follow_models()

    def rest(self) -> None:
        """Stop following calls of models."""
        if self._leave_models is not None:
            self._leave_models()

    def wake(self) -> None:
        """Follow calls of models again."""
        if self._leave_models is not None and self._follow_models is not None:
            self._leave_models = self._follow_models()

    def count(self, kind: str, subject: Any) -> bool | None:
        """Only count a tick. Returns whether it is a step; None for a new subject, which is not counted."""
        known = {BATCHES: self._iterators, STEPS: self._optimizers}.get(kind, {}).get(subject)
        if known is None:
            return None
        run = known.run
        if run is None or (kind == STEPS and (self._clock is None or self._clock() is not subject)):
            return False  # the program's own loop runs, or another optimizer is the clock
        run.count += 1
        watch = self._loops[run.loop]
        watch.tops += 1
        watch.longest = max(watch.longest, run.count)
        return not watch.holds_loops and self.counts(watch)

    def remove(self) -> None:
        """Leave torch as it was."""
        for undo in self._undo:
            undo()
        if self._leave_models is not None:
            self._leave_models()
        self._undo, self._leave_models, self._follow_models = [], None, None

    # ticks

    def turned(self, kind: str, subject: Any, frame: FrameType) -> Run | None:
        """The run that a tick is an iteration of; None in the program's own loop, or if another optimizer is the
        clock."""
        self._running.settle(frame)
        if kind == CALLS:
            return self._call(frame)
        run = self._batch(subject, frame) if kind == BATCHES else self._step(subject, frame)
        if run is not None:
            self._watch_models()
        return run

    def exhausted(self, iterator: Any) -> None:
        """An iterator has no more batches: its loop has ended."""
        subject = self._iterators.pop(iterator, None)
        if subject is not None and subject.run is not None:
            self._going = [(run, each) for run, each in self._going if run is not subject.run]
            self._over.append(subject.run)
            self._drawn_ahead = True

    def over(self) -> list[Run]:
        """The runs that have ended since the last call."""
        over, self._over = self._over, []
        return over

    def around(self) -> list[Run]:
        """The running loops of libraries, outermost first."""
        if alive := self._alive():
            return alive
        clock = None if self._clock is None else self._clock()
        step = None if clock is None else self._optimizers[clock].run
        return list(dict.fromkeys(run for run in (step, self._last) if run is not None))

    def is_inside(self, runs: list[Run]) -> bool:
        """Whether a library's loop runs in the innermost of these loops of the program."""
        return bool(runs) and any(loop == runs[-1].loop for _, loop in self._inside)

    def counts(self, watch: LoopWatch) -> bool:
        """Whether an iteration of a loop is a step of the program."""
        return not isinstance(watch, ClockWatch) or watch.kind == BATCHES or not self._going

    def _batch(self, iterator: Any, frame: FrameType) -> Run | None:
        if self._code.is_own(frame.f_code):
            return None
        subject = self._iterators.get(iterator)
        if subject is None:
            subject = self._iterators[iterator] = _Subject()
        if self._is_own(BATCHES, subject, frame):
            return None
        run = subject.run
        if run is None:
            number = self._batches_at(iterator, frame)
            if number is None:
                return None
            run = subject.run = self._begin(number, BATCHES, frame)
        alive = self._alive()
        if run in alive:
            del self._going[alive.index(run) + 1 :]
        else:
            self._going.append((run, weakref.ref(iterator)))
        return run

    def _batches_at(self, iterator: Any, frame: FrameType) -> int | None:
        """The number of the loop over these batches, by its stack and its data set; None if there are too many
        loops."""
        place = tuple(each.f_code for each in frames_of(frame))
        data = self._batches.setdefault(place, {})
        key = id(getattr(iterator, "_dataset", None))
        if key not in data and len(data) >= _MOST_DATA:
            key = next(reversed(data))  # a new split each time
        count = sum(map(len, self._batches.values()))
        if key not in data and count < _MOST_BATCHES:
            data[key] = _FIRST_OF_BATCHES - count
        return data.get(key)

    def _alive(self) -> list[Run]:
        """The running loops over batches."""
        gone = [run for run, iterator in self._going if iterator() is None]
        if gone:
            self._over += gone
            self._going = [(run, iterator) for run, iterator in self._going if run not in gone]
        return [run for run, _ in self._going]

    def _step(self, optimizer: Any, frame: FrameType) -> Run | None:
        if (own := self._own_run()) is not None:
            self._loops[own.loop].trains = True
        subject = self._optimizers.get(optimizer)
        if subject is None:
            subject = self._optimizers[optimizer] = _Subject()
        if self._is_own(STEPS, subject, frame):
            return None
        clock = None if self._clock is None else self._clock()
        if clock is not optimizer:
            # of several optimizers that step in turn, the first is the clock
            subject.since += 1
            if clock is not None and subject.since < 2:
                return None
            self._clock = weakref.ref(optimizer)
            subject.run = None
        for each in self._optimizers.values():
            each.since = 0
        for run in self._alive()[-1:]:
            watch = self._loops[run.loop]
            assert isinstance(watch, ClockWatch)
            watch.trains = True
        if subject.run is None:
            subject.run = self._begin(_NUMBERS[STEPS], STEPS, frame)
        self._last = subject.run
        return subject.run

    def _call(self, frame: FrameType) -> Run | None:
        """A model is called, not by another module: an iteration only without other loops."""
        subject = self._single.setdefault(CALLS, _Subject())
        if self._own_run() is not None or self._alive() or self._code.is_bare(frame):
            return None
        if self._drawn_ahead:
            self._drawn_ahead = False
            return None
        if subject.run is None or self._last is not subject.run:
            subject.run = self._begin(_NUMBERS[CALLS], CALLS, frame)
        self._last = subject.run
        return subject.run

    def _begin(self, number: int, kind: str, frame: FrameType) -> Run:
        watch = self._loops.get(number)
        if watch is None:
            watch = self._loops[number] = ClockWatch(number, kind, *self._windows)
        if isinstance(watch, ClockWatch) and watch.path is None:
            caller = next((each for each in frames_of(frame) if self._code.is_own(each.f_code)), frame)
            watch.path, watch.line = caller.f_code.co_filename, caller.f_lineno
        watch.outer.update(run.loop for run in self._running.runs)
        return Run(number, self._number(), frame)

    def _own_run(self) -> Run | None:
        """The innermost running loop of the program itself."""
        return self._running.runs[-1] if self._running.runs else None

    def _is_own(self, what: Any, subject: _Subject, frame: FrameType) -> bool:
        """Whether the program's own loop causes this tick: each of its iterations has one or two ticks."""
        own = self._own_run()
        if own is None or (what, own.loop) in self._inside:
            return False
        iteration = (own.number, own.count)
        if subject.own != iteration:
            subject.own, subject.times = iteration, 0
        subject.times += 1
        if subject.times < _FEW or not self._code.is_library_between(frame, own.frame):
            return True
        self._inside.add((what, own.loop))
        return False


class _Code:
    """Classifies code: "own" (the program), "library", and "between" (torch, the standard library, memlint)."""

    def __init__(self, own: Collection[str]) -> None:
        self._own = own
        paths = sysconfig.get_paths()
        places = paths["stdlib"], paths["platstdlib"], HERE
        self._between = tuple(os.path.realpath(path) + os.sep for path in places)
        self._known: dict[CodeType, str] = {}

    def is_own(self, code: CodeType) -> bool:
        return self._kind(code) == "own"

    def is_library_between(self, frame: FrameType, around: int) -> bool:
        """Whether a library's frame is between the frame ``around`` and this one."""
        between = itertools.takewhile(lambda each: id(each) != around, frames_of(frame))
        return any(self._kind(each.f_code) == "library" for each in between)

    def is_bare(self, frame: FrameType) -> bool:
        """Whether no library's frame is on the stack, so that no library has a loop here."""
        return not any(self._kind(each.f_code) == "library" for each in frames_of(frame))

    def _kind(self, code: CodeType) -> str:
        kind = self._known.get(code)
        if kind is None:
            kind = self._known[code] = self._classify(code.co_filename)
        return kind

    def _classify(self, name: str) -> str:
        if name.startswith("<"):
            return "between" if name.startswith("<frozen ") else "own"
        path = os.path.realpath(name)
        if path in self._own:
            return "own"
        for mark in PACKAGES:
            if mark in path:
                return "between" if path.rpartition(mark)[2].startswith("torch" + os.sep) else "library"
        return "between" if path.startswith(self._between) else "library"


def _follow_optimizers(turn: Turn) -> Callable[[], None]:
    register = getattr(importlib.import_module("torch.optim.optimizer"), "register_optimizer_step_post_hook", None)
    if register is None:
        return lambda: None

    def stepped(optimizer: Any, *_: Any) -> None:
        turn(STEPS, optimizer, sys._getframe(1))

    remove: Callable[[], None] = register(stepped).remove
    return remove


def _follow_batches(turn: Turn, exhausted: Callable[[Any], None]) -> Callable[[], None]:
    base = importlib.import_module("torch.utils.data.dataloader")._BaseDataLoaderIter
    fetch = base.__next__

    def draw(self: Any) -> Any:
        try:
            batch = fetch(self)
        except StopIteration:
            exhausted(self)
            raise
        turn(BATCHES, self, sys._getframe(1))
        return batch

    draw.__name__, draw.__qualname__, draw.__doc__ = fetch.__name__, fetch.__qualname__, fetch.__doc__
    base.__next__ = draw

    def undo() -> None:
        if base.__next__ is draw:
            base.__next__ = fetch

    return undo


def _follow_models(torch: Any, turn: Turn) -> Callable[[], None]:
    """Call ``turn`` for each call of an evaluated module outside other modules. Returns what undoes this."""
    module = importlib.import_module("torch.nn.modules.module")
    compiling = torch.compiler.is_compiling
    inside = threading.local()

    def before(called: Any, _: Any) -> None:
        if compiling() or getattr(inside, "module", None) is not None:
            return
        inside.module = called
        if not called.training or not torch.is_grad_enabled():
            turn(CALLS, called, sys._getframe(1))

    def after(called: Any, *_: Any) -> None:
        if not compiling() and getattr(inside, "module", None) is called:
            inside.module = None

    handles = [module.register_module_forward_pre_hook(before)]
    try:
        handles.append(module.register_module_forward_hook(after, always_call=True))
    except TypeError:  # an older torch: after an exception in a model, no call would be followed
        handles.pop().remove()

    def remove() -> None:
        for handle in handles:
            handle.remove()

    return remove
