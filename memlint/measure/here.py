"""Measures code in this process: a cell of a notebook, in the kernel that runs it."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from types import FrameType, TracebackType
from typing import Any

from .plan import Plan
from .probing import probes
from .session.session import Session


class Here(Session):
    """A session around a piece of code: ``with Here(plan) as session: …``, then ``session.data()``. ``plan``: with
    ``full`` set, and an ``output`` that is there meanwhile. Probes that earlier sessions left in the process say
    nothing to it, so its numbers must be new."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        self._numbers = frozenset([*self._loops, *self._sites])

    def __enter__(self) -> Here:
        probes.install(self)
        if "torch" in sys.modules:
            probes.torch_came()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        failed = {"kind": "failed", "code": 1, "exception": None if kind is None else kind.__name__}
        with ExitStack() as left:  # whatever fails
            left.callback(probes.remove, self)
            left.callback(self._windows.meter.close)
            self.finish({"kind": "finished", "code": 0, "exception": None} if kind is None else failed)

    def enter(self, number: int, around: tuple[int, ...], frame: FrameType) -> None:
        if number in self._numbers:
            super().enter(number, tuple(each for each in around if each in self._numbers), frame)

    def top(self, number: int, frame: FrameType) -> None:
        if number in self._numbers:
            super().top(number, frame)

    def exit(self, number: int, frame: FrameType) -> None:
        if number in self._numbers:
            super().exit(number, frame)

    def hit(self, number: int, value: Any, frame: FrameType) -> None:
        if number in self._numbers:
            super().hit(number, value, frame)

    def value(self, number: int, value: Any) -> None:
        if number in self._numbers:
            super().value(number, value)

    def begin_comprehension(self, number: int, frame: FrameType) -> None:
        if number in self._numbers:
            super().begin_comprehension(number, frame)

    def end_comprehension(self, number: int) -> None:
        if number in self._numbers:
            super().end_comprehension(number)
