"""The probes of a process while sessions come and go."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memlint.measure.here import Here
from memlint.measure.plan import FilePlan, LoopPlan, Plan, SitePlan
from memlint.measure.probing import probes


class Leaving(Here):
    """A session that another thread takes away as soon as a probe has asked for it."""

    @property
    def active(self) -> bool:
        probes.remove(self)
        return True

    @active.setter
    def active(self, _: bool) -> None: ...


def _plan(folder: Path) -> Plan:
    path = str(folder / "a.py")
    file = FilePlan(path, (SitePlan(2, 2, 1, 2, 2),), (LoopPlan(1, 1, 1),))
    return Plan(path, (), (file,), str(folder), full=True)


@pytest.mark.parametrize(
    "probe",
    [
        lambda: probes.enter(1, ()),
        lambda: probes.loop(1),
        lambda: probes.leave(1),
        lambda: probes.begin(2, "value"),
        lambda: probes.more(2, "value"),
        lambda: probes.begin_comprehension(2),
        lambda: probes.end_comprehension(2, None, "value"),
        lambda: probes.turn("next", None, sys._getframe()),
        probes.is_measuring,
    ],
)
def test_a_session_that_is_removed_while_a_probe_runs_breaks_nothing(tmp_path: Path, probe: Callable[[], Any]) -> None:
    session = Leaving(_plan(tmp_path))
    probes.install(session)
    try:
        assert probe() in (None, "value", True)
    finally:
        probes.remove(session)


@pytest.mark.parametrize("broken", ["finish", "close"])
def test_a_session_that_fails_at_its_end_does_not_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    def fail(*_: Any) -> None:
        raise OSError("no space left")

    closed = []
    session = Here(_plan(tmp_path))
    meter = session._windows.meter
    monkeypatch.setattr(meter, "close", lambda: closed.append(meter))
    monkeypatch.setattr(*((session, "finish") if broken == "finish" else (meter, "close")), fail)
    with pytest.raises(OSError, match="no space left"), session:
        assert probes.is_measuring()
    assert probes._session is None
    assert closed == ([meter] if broken == "finish" else [])
