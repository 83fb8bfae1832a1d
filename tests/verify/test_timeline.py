"""The timeline stays light however long a program runs, and says what is held when."""

from __future__ import annotations

import itertools
import weakref
from typing import Any

import pytest

from memlint.finding import Finding, Growth
from memlint.measure.memory.meters import Bytes, Meter
from memlint.measure.session import timeline as measuring
from memlint.measure.session.timeline import Timeline, shares
from memlint.measure.sites.sites import Generation, SiteWatch
from memlint.verifier.judging.timeline import timeline
from memlint.verifier.model import Verdict
from memlint.verifier.probing.planning import Probes

CONFIRMED = Verdict(verdict="confirmed", reason="it stays")


class Rising(Meter):
    """Holds a byte more at each reading."""

    def __init__(self) -> None:
        self.read_so_often = 0

    def read(self) -> Bytes:
        self.read_so_often += 1
        return {"cpu": self.read_so_often}


class Storage:
    """As much of a storage as is asked for."""

    def __init__(self, address: int, count: int) -> None:
        self._cdata, self._count = address, count

    def nbytes(self) -> int:
        return self._count


@pytest.fixture
def free(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading costs no time."""
    monkeypatch.setattr(measuring, "_SHARE", 1e9)


@pytest.mark.usefixtures("free")
def test_few_points_from_the_first_step_to_the_last() -> None:
    line, meter = Timeline(), Rising()
    for step in range(20_000):
        line.note(step, meter, None, ())
    line.note(20_000, meter, None, (), always=True)
    steps = line.data()["steps"]
    assert 400 <= len(steps) <= 1_001
    assert (steps[0], steps[-1]) == (0, 20_000)
    assert max(after - before for before, after in itertools.pairwise(steps)) <= 64
    assert meter.read_so_often < 5_000


def test_reading_takes_a_small_part_of_the_time() -> None:
    line, meter = Timeline(), Rising()
    for step in range(10_000):
        line.note(step, meter, None, ())
    assert meter.read_so_often < 5_000, "the loop does nothing, so almost all of its time would be reading"


def test_no_storage_is_counted_for_two_sites() -> None:
    storages = [Storage(1, 100), Storage(2, 50)]
    sites = []
    for number, held in ((1, storages[:1]), (2, storages)):
        site = SiteWatch(number, 3, 15)
        site.hits = 3
        generation = Generation((1, 1))
        generation.blocks = [(weakref.ref(one), "cpu") for one in held]
        site.generations.append(generation)
        sites.append(site)
    sites.append(SiteWatch(3, 3, 15))
    assert {number: row["held"] for number, row in shares(sites).items()} == {1: {"cpu": 100}, 2: {"cpu": 50}}
    del storages[0], held
    assert shares(sites)[1]["held"] == {}


def measured(held: list[int], hits: list[int], total: list[int], runs: list[list[Any]]) -> dict[str, Any]:
    """What a child writes of one site whose loop is number 2: four of its hits are followed."""
    rows = [
        None if not count else {"held": {"cpu": one}, "followed": min(count, 4), "hits": count, "loop": 2}
        for one, count in zip(held, hits, strict=True)
    ]
    steps = list(range(len(held)))
    points = {"steps": steps, "seconds": steps, "requested": {"cpu": total}, "host": steps, "sites": {"1": rows}}
    return {"timeline": {**points, "runs": runs}}


def projected(what: dict[str, Any]) -> tuple[int, ...]:
    finding = Finding(
        code="MEM102", name="n", severity="error", confidence="high", message="", path="a.py", line=1, column=1,
        end_line=1, end_column=2, growth=Growth("device-graph", "per-iteration"), fingerprint="f",
    )  # fmt: skip
    found = timeline(what, Probes((), {1: finding}, {2: ("a.py", 1)}), {1: CONFIRMED}, {2: "a.py:1"})
    assert found is not None
    (share,) = found.shares
    return share.projected


def test_hits_that_are_not_followed_keep_as_much_as_those_that_are() -> None:
    what = measured([0, 10, 20, 30, 40, 40, 40], [0, 1, 2, 3, 4, 5, 6], [90] * 7, [[2, 0, None]])
    assert projected(what) == (0, 10, 20, 30, 40, 50, 60)


def test_a_later_run_keeps_no_more_than_it_gained() -> None:
    held = [0, 20, 40, 0, 0, 0, 0, 0]
    hits = [0, 2, 4, 4, 4, 6, 8, 8]
    total = [90, 110, 130, 90, 90, 110, 115, 90]
    assert projected(measured(held, hits, total, [[2, 0, 3], [2, 4, 6]])) == (0, 20, 40, 0, 0, 20, 25, 0)
