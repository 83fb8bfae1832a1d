"""Comparisons of the two halves of a window, which tell growth from fluctuation and from a single gain."""

from __future__ import annotations

import itertools
from collections.abc import Sequence


def rises(held: Sequence[int]) -> bool:
    """Whether every value of the second half exceeds every one of the first. Batches of different sizes fluctuate, and
    do not."""
    half = len(held) // 2
    return half > 0 and min(held[half:]) > max(held[:half])


def by_half(values: Sequence[int]) -> tuple[bool, bool]:
    """Whether the first and the second half have a value other than 0."""
    half = len(values) // 2
    return any(values[:half]), any(values[half:])


def steady(held: Sequence[int], least: int) -> bool:
    """Whether the values rise by ``least`` a step or more in each half, and in most steps: allocators and libraries
    grow in few steps, ever more rarely."""
    half = len(held) // 2
    if not rises(held):
        return False
    slowest = min((held[half] - held[0]) / half, (held[-1] - held[half]) / (len(held) - 1 - half))
    rising = sum(after > before for before, after in itertools.pairwise(held))
    return slowest >= least and 2 * rising > len(held) - 1
