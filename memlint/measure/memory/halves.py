"""The two halves of a window: what tells growth from what comes and goes, or came once."""

from __future__ import annotations

import itertools
from collections.abc import Sequence


def rises(held: Sequence[int]) -> bool:
    """Whether there was more each time of the second half than ever in the first: batches of changing sizes make it go
    up and down."""
    half = len(held) // 2
    return half > 0 and min(held[half:]) > max(held[:half])


def by_half(values: Sequence[int]) -> tuple[bool, bool]:
    """Whether each half has something."""
    half = len(values) // 2
    return any(values[:half]), any(values[half:])


def steady(held: Sequence[int], least: int) -> bool:
    """Whether it rises by ``least`` a step or more in each half, and not by a few leaps: what an allocator or a library
    sets aside for itself comes seldom, and ever less."""
    half = len(held) // 2
    if not rises(held):
        return False
    slowest = min((held[half] - held[0]) / half, (held[-1] - held[half]) / (len(held) - 1 - half))
    rising = sum(after > before for before, after in itertools.pairwise(held))
    return slowest >= least and 2 * rising > len(held) - 1
