"""Containers of bounded size, such as a replay buffer: a loop that fills one does not grow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

#: where remaining memory was allocated, as a child wrote it
Row = Mapping[str, Any]

#: bytes of host memory that a tensor takes with the objects around it
_OBJECTS = 2_048


def without_rings(run: Mapping[str, Any], device: str, each: int, rows: Sequence[Row]) -> tuple[int, list[Row]]:
    """The memory that a loop leaves on a device per iteration, and where it was allocated, without what fills rings."""
    rings = [row for row in rows if _fits(run, device, row)]
    filling = sum(row["bytes_per_iteration"] for row in rings)
    return max(0, each - filling) if rings else each, [row for row in rows if row not in rings]


def filled(run: Mapping[str, Any], device: str, rows: Iterable[Row]) -> Iterable[tuple[str, int]]:
    """The rings that a loop fills, by their paths, and the bytes that each will hold for a place that fills it."""
    for row in rows:
        if _fits(run, device, row):
            yield row["holders"][0]["ring"], _when_full(row)


def objects(run: Mapping[str, Any], device: str, rows: Iterable[Row]) -> int:
    """The bytes of host memory an iteration that the tensors in rings may explain."""
    rings = [row for row in rows if _fits(run, device, row)]
    return sum(round(_OBJECTS * max(1.0, row["bytes_per_iteration"] / max(1, _element(row)))) for row in rings)


def _fits(run: Mapping[str, Any], device: str, row: Row) -> bool:
    """Whether only rings hold the memory that was allocated at a place, and there is room for them when they are full.
    What they hold through a graph may be a chain without end."""
    holders = row.get("holders") or ()
    if not holders or not all(one.get("most") and one["elements"] and not one["through"] for one in holders):
        return False
    free = (run.get("free") or {}).get(device)
    return free is None or _when_full(row) <= free


def _when_full(row: Row) -> int:
    return int(_element(row) * row["holders"][0]["most"])


def _element(row: Row) -> float:
    """The bytes of one tensor that was allocated at a place, by the examined ones."""
    holder = row["holders"][0]
    size: float = holder["bytes"] / max(1, holder["survivors"])
    return size
