"""The timeline of a run: memory by step, and the share of each confirmed site."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from memlint.verifier.model import LoopRun, Share, Timeline, Verdict
from memlint.verifier.probing.planning import Probes

#: the verdicts with a share of tensors
_SHOWN = ("confirmed", "cycle")


def timeline(
    measured: Mapping[str, Any], put_in: Probes, verdicts: Mapping[int, Verdict], names: Mapping[int, str]
) -> Timeline | None:
    """The timeline of one process; None if it recorded no points. ``names``: of its loops."""
    points = measured.get("timeline")
    if not points or not points["steps"]:
        return None
    return Timeline(
        # a loop that contains others made no steps
        steps=tuple(itertools.accumulate(points["steps"], max)),
        seconds=tuple(points["seconds"]),
        devices={device: tuple(held) for device, held in points["requested"].items()},
        host=tuple(points["host"]),
        shares=tuple(_shares(points, put_in, verdicts)),
        runs=tuple(
            LoopRun(names[loop], first, last) for loop, first, last in points["runs"] if last is None or last > first
        ),
    )


def _shares(points: Mapping[str, Any], put_in: Probes, verdicts: Mapping[int, Verdict]) -> list[Share]:
    found: list[Share] = []
    for number, rows in points["sites"].items():
        site = int(number)
        if site not in put_in.findings or verdicts[site].verdict not in _SHOWN:
            continue
        for device in dict.fromkeys(device for row in rows if row is not None for device in row["held"]):
            held = tuple(_held(row, device) for row in rows)
            if any(held):
                total = points["requested"].get(device, held)
                projected = _projected(rows, total, held, _runs(points, rows))
                found.append(Share(put_in.findings[site].fingerprint, device, held, tuple(projected)))
    return found


def _held(row: Mapping[str, Any] | None, device: str) -> int:
    return 0 if row is None else int(row["held"].get(device, 0))


def _runs(points: Mapping[str, Any], rows: Sequence[Mapping[str, Any] | None]) -> list[tuple[int, int]]:
    """The runs of the site's innermost loop: the first point of each and its last."""
    loop = next((row["loop"] for row in reversed(rows) if row is not None), None)
    steps: Sequence[int] = points["steps"]
    return [
        (bisect.bisect_left(steps, first), len(steps) - 1 if last is None else bisect.bisect_left(steps, last))
        for number, first, last in points["runs"]
        if number == loop and first <= steps[-1]
    ]


def _projected(
    rows: Sequence[Mapping[str, Any] | None],
    total: Sequence[int],
    held: Sequence[int],
    runs: Sequence[tuple[int, int]],
) -> Iterator[int]:
    """What all hits of a site hold, if those that are not followed hold as much each as those that are.

    Once the followed ones are freed, those of a later run of the loop are taken to hold as much each, no more than what
    was gained in that run, and nothing after it.
    """
    each = max(one / row["followed"] for row, one in zip(rows, held, strict=True) if row is not None)
    for at, row in enumerate(rows):
        base = next((first for first, last in reversed(runs) if first <= at <= last), None)
        if row is None:
            yield 0
        elif held[at]:
            yield held[at] + held[at] * max(row["hits"] - row["followed"], 0) // row["followed"]
        elif base is None:
            yield 0
        else:
            before = rows[base]
            hits = row["hits"] - (0 if before is None else before["hits"])
            yield min(round(each * hits), max(total[at] - total[base], 0))
