"""What is growth of host memory beside tensors, and what is an allocator's or a library's own."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

import pytest

from memlint.measure.loops.loops import LoopWatch
from memlint.measure.memory.host import NOISE, is_level, rises_in_workers, rises_on_host
from memlint.measure.memory.meters import Meter


def _readings(steps: Iterable[int], tensors: int = 0) -> list[dict[str, Any]]:
    held = itertools.accumulate(steps, initial=1 << 20)
    return [{"host": each + tensors * at, "requested": {"cpu": tensors * at}} for at, each in enumerate(held)]


@pytest.mark.parametrize(
    ("steps", "grows"),
    [
        ([81_920] * 24, True),
        ([NOISE * 2] * 24, True),
        ([NOISE // 4] * 24, False),
        ([80_000] * 12 + [0] * 12, False),
        ([0] * 12 + [80_000] * 12, False),
        ([3_000_000, *[0] * 23], False),
        ([0] * 6 + [400_000] + [0] * 11 + [400_000] + [0] * 5, False),
        ([-2_500, 2_600] * 12, False),
        ([], False),
    ],
)
def test_growth_comes_with_most_iterations_and_in_both_halves(steps: list[int], grows: bool) -> None:
    assert rises_on_host(_readings(steps)) is grows


def test_tensors_are_no_growth_of_host_memory_beside_them() -> None:
    assert not rises_on_host(_readings([0] * 24, tensors=100_000))
    assert rises_on_host(_readings([5_000] * 24, tensors=100_000))


def test_what_is_given_back_later_is_no_growth() -> None:
    readings = _readings([80_000] * 24)
    assert not rises_on_host(readings, settled=1 << 20)
    assert rises_on_host(readings, settled=1 << 30)


@pytest.mark.parametrize(("kept", "grows"), [(False, False), (True, True)], ids=["given back", "kept"])
def test_a_leap_does_not_hide_what_is_given_back_with_it(kept: bool, grows: bool) -> None:
    """Graphs of 16 iterations are given back as an optimizer's first step sets a workspace aside."""
    held = [5_000 * (step if kept else step % 16) + 8_000_000 * (step > 15) for step in range(64)]
    watch = LoopWatch(1, warmup=3, window=12)
    watch.suspect = True
    for watch.tops, host in enumerate(held):
        if watch.read(Meter(), lambda host=host: host, watch.tops):  # type: ignore[misc]
            break
    assert len(watch.readings) == 25
    assert rises_on_host(watch.readings) is grows


def test_workers_grow_only_where_they_are_the_same_number() -> None:
    rows = [{"workers": 10**8 + 10**6 * at, "worker_count": 2} for at in range(25)]
    assert rises_in_workers(rows)
    assert not rises_in_workers([{**row, "worker_count": at // 13} for at, row in enumerate(rows)])
    assert not rises_in_workers([{"rss": 1}] * 25)


@pytest.mark.parametrize(
    ("later", "level"),
    [
        ([(tick, 1_000_000 + 50_000 * (tick % 4)) for tick in range(12)], True),  # filled, and emptied each fourth time
        ([(tick, 1_000_000) for tick in range(12)], True),
        ([(tick, 1_000_000 + 10_000 * tick) for tick in range(12)], False),
        ([(tick, 1_000_000 + 10_000 * tick + 50_000 * (tick % 4)) for tick in range(12)], False),  # it leaks as well
        ([(tick, 1_000_000) for tick in range(7)], False),  # too seldom to tell
        ([], False),
    ],
)
def test_memory_that_comes_down_to_its_floor_again_does_not_grow(later: list[tuple[int, int]], level: bool) -> None:
    assert is_level(later) == level


@pytest.mark.parametrize(
    ("after", "gained", "grows"),
    [
        pytest.param(32, 15_000, False, id="once more of a long period"),
        pytest.param(32, 32 * NOISE * 2, True, id="it goes on"),
        pytest.param(6, 3_000, True, id="too soon to tell"),
    ],
)
def test_what_ends_to_grow_behind_its_window_is_no_growth(after: int, gained: int, grows: bool) -> None:
    watch = LoopWatch(1, warmup=0, window=12)
    watch.suspect = True
    held = 1 << 20
    for watch.tops in range(1, 100):
        held += 3 * NOISE
        if watch.read(Meter(), lambda: held, watch.tops):  # noqa: B023
            break
    watch.wait(watch.tops)
    watch.tops += after
    watch.settle({}, held + gained)
    assert rises_on_host(watch.readings, watch.host_settled) is grows
