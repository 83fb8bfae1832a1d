"""The probes: functions that an instrumented program calls as builtins (`instrument` has their names).

Each returns at once while torch.compile traces it, so that it causes no graph break. None may fail the program.
"""

from __future__ import annotations

import builtins
import os
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from ..processes.spawned import Forked
from ..session.session import Session, Stop
from . import instrument

#: seconds that a probe waits for one in another thread
_PATIENCE = 5.0


def _never() -> bool:
    return False


_compiling: Callable[[], bool] = _never
#: another thread may reset it at any time, so each probe reads it once
_session: Session | Forked | None = None
_at_forks: list[bool] = []


def install(session: Session) -> None:
    """Make the probes builtins, which report to this session."""
    global _session
    if not _at_forks:  # for as long as the process lives
        os.register_at_fork(after_in_child=_forked)
        _at_forks.append(True)
    _session = session
    for name, probe in (
        (instrument.ENTER, enter),
        (instrument.LOOP, loop),
        (instrument.EXIT, leave),
        (instrument.NEXT, begin),
        (instrument.VALUE, more),
        (instrument.BEGUN, begin_comprehension),
        (instrument.WHOLE, end_comprehension),
    ):
        setattr(builtins, name, probe)


def remove(session: Session) -> None:
    """Disconnect the probes from a session, if they report to it."""
    global _session
    if _session is session:
        _session = None


def is_measuring() -> bool:
    """Whether a session is active in this process."""
    session = _session
    return isinstance(session, Session) and session.active


def _forked() -> None:
    global _session
    session = _session
    if isinstance(session, Session):
        session.leave()
        _session = Forked(session.plan.output)


def torch_came() -> None:
    """torch is imported."""
    global _compiling
    compiler = getattr(sys.modules["torch"], "compiler", None)
    _compiling = getattr(compiler, "is_compiling", _never)
    session = _session
    if session is not None:
        _guarded(session, session.torch_came)
    if isinstance(session, Session) and session.active and session.torch is not None:
        _guarded(session, session.follow, turn)


def enter(number: int, around: tuple[int, ...]) -> None:
    """Before a loop. ``around``: the loops of the same function that it stands in."""
    if _compiling():
        return
    session = _session
    if session is not None and session.active:
        _guarded(session, session.enter, number, around, sys._getframe(1))


def loop(number: int) -> None:
    """The top of a loop's body."""
    if _compiling():
        return
    session = _session
    if session is not None and session.active:
        if (watch := session.rest.loops.get(number)) is not None:
            watch.tops += 1
            return
        _guarded(session, session.top, number, sys._getframe(1))


def leave(number: int) -> None:
    """After a loop."""
    if _compiling():
        return
    session = _session
    if session is not None and session.active:
        _guarded(session, session.exit, number, sys._getframe(1))


def begin(number: int, value: Any) -> Any:
    """A hit of a site, with the first value that it keeps."""
    if _compiling():
        return value
    session = _session
    if session is not None and session.active:
        if (site := session.rest.sites.get(number)) is not None:
            session.rest.hit(site)
            return value
        _guarded(session, session.hit, number, value, sys._getframe(1))
    return value


def more(number: int, value: Any) -> Any:
    """A further value of a hit."""
    if _compiling():
        return value
    session = _session
    if session is not None and session.active and number not in session.rest.sites:
        _guarded(session, session.value, number, value)
    return value


def begin_comprehension(number: int) -> None:
    """Before a comprehension whose elements are hits of a site."""
    if _compiling():
        return
    session = _session
    if session is not None and session.active:
        _guarded(session, session.begin_comprehension, number, sys._getframe(1))


def end_comprehension(number: int, _: None, value: Any) -> Any:
    """After a comprehension, with its value."""
    if _compiling():
        return value
    session = _session
    if session is not None and session.active:
        _guarded(session, session.end_comprehension, number)
    return value


def turn(kind: str, subject: Any, frame: FrameType) -> None:
    """A loop of a library may have come to its next iteration."""
    if _compiling():
        return
    session = _session
    if isinstance(session, Session) and session.active and not session.rest.turned(kind, subject):
        _guarded(session, session.turn, kind, subject, frame)


def _guarded(session: Session | Forked, call: Callable[..., Any], *arguments: Any) -> None:
    # a finaliser in memlint's garbage collection may wait for a thread that waits here
    if not session.lock.acquire(timeout=_PATIENCE):
        return
    try:
        call(*arguments)
    except Stop:
        raise
    except Exception as error:  # an internal error must not fail the program
        if _is_the_programs(error, session):
            raise
        session.broken(error)
    finally:
        session.lock.release()


def _is_the_programs(error: Exception, session: Session | Forked) -> bool:
    """Whether an error comes from a signal handler or a finaliser of the program that ran during a probe."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return False
    path = os.path.realpath(trace.tb_frame.f_code.co_filename)
    return path in session.paths
