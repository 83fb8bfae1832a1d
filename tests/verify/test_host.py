"""What is growth of host memory beside tensors, and what is an allocator's or a library's own."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

import pytest

from memlint.measure.host import NOISE, rises_in_workers, rises_on_host


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


def test_workers_grow_only_where_they_are_the_same_number() -> None:
    rows = [{"workers": 10**8 + 10**6 * at, "worker_count": 2} for at in range(25)]
    assert rises_in_workers(rows)
    assert not rises_in_workers([{**row, "worker_count": at // 13} for at, row in enumerate(rows)])
    assert not rises_in_workers([{"rss": 1}] * 25)
