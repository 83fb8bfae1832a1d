"""The two halves of a window: what tells growth from what comes and goes, or came once."""

from __future__ import annotations

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
