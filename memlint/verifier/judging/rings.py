"""Containers that hold so many elements and no more, such as a replay buffer: a loop that fills one does not grow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

#: where memory was asked for and stays, as a child wrote it
Row = Mapping[str, Any]


def without_rings(
    run: Mapping[str, Any], loop: Mapping[str, Any], device: str, each: int, rows: Sequence[Row]
) -> tuple[int, list[Row]]:
    """What a loop leaves on a device in each iteration, and where that was asked for, beside what fills rings."""
    rings = [row for row in rows if _fit(run, loop, device, row)]
    filling = sum(row["bytes_per_iteration"] for row in rings)
    return max(0, each - filling) if rings else each, [row for row in rows if row not in rings]


def filled(
    run: Mapping[str, Any], loop: Mapping[str, Any], device: str, rows: Iterable[Row]
) -> Iterable[tuple[str, int]]:
    """The rings that a loop fills, by their paths, and the bytes that each will hold for a place that fills it."""
    for row in rows:
        if _fit(run, loop, device, row):
            yield row["holders"][0]["ring"], _when_full(loop, row)


def _fit(run: Mapping[str, Any], loop: Mapping[str, Any], device: str, row: Row) -> bool:
    """Whether rings alone keep what was asked for at a place, and there is room for them when they are full."""
    holders = row.get("holders") or ()
    if not holders or not all(one.get("most") and one["elements"] for one in holders):
        return False
    free = (run.get("free") or {}).get(device)
    return free is None or _when_full(loop, row) <= free


def _when_full(loop: Mapping[str, Any], row: Row) -> int:
    """By what the elements hold that were there when it was asked who keeps them."""
    holder = row["holders"][0]
    tops = row.get("tops") or (loop["survivors"] or {}).get("tops") or loop["tops"]
    return int(row["bytes_per_iteration"] * tops * holder["most"] / holder["elements"])
