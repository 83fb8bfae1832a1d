"""Measures code in this process, such as a cell of a notebook in its kernel."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from contextlib import ExitStack
from types import FrameType, TracebackType
from typing import Any, TypeVar, cast

from .plan import Plan
from .probing import probes
from .session.session import Session

_Probe = TypeVar("_Probe", bound=Callable[..., None])


def _own(probe: _Probe) -> _Probe:
    """A method of `Session` that ignores the ids of other plans."""

    @functools.wraps(probe)
    def call(session: Here, number: int, *arguments: Any) -> None:
        if number in session.numbers:
            probe(session, number, *arguments)

    return cast(_Probe, call)


class Here(Session):
    """A session around a piece of code: ``with Here(plan) as session: …``, then ``session.data()``. ``plan``: has
    ``full`` set, and an ``output`` that exists meanwhile. Code of earlier sessions in this process still has its
    probes, which are ignored: ids must not be used again."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        self.numbers = frozenset([*self._loops, *self._sites])

    def __enter__(self) -> Here:
        probes.install(self)
        if "torch" in sys.modules:
            probes.torch_came()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        failed = {"kind": "failed", "code": 1, "exception": None if kind is None else kind.__name__}
        with ExitStack() as stack:  # both callbacks run, whatever fails
            stack.callback(probes.remove, self)
            stack.callback(self._windows.meter.close)
            self.finish({"kind": "finished", "code": 0, "exception": None} if kind is None else failed)

    def enter(self, number: int, around: tuple[int, ...], frame: FrameType) -> None:
        if number in self.numbers:
            super().enter(number, tuple(each for each in around if each in self.numbers), frame)

    top = _own(Session.top)
    exit = _own(Session.exit)
    hit = _own(Session.hit)
    value = _own(Session.value)
    begin_comprehension = _own(Session.begin_comprehension)
    end_comprehension = _own(Session.end_comprehension)
