"""Growth that no finding explains, and memory that is reserved and cannot be used."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from memlint.verifier.model import BAD, Fragmentation, Frame, Stack, Unattributed, Verdict
from memlint.verifier.verdicts import BLOCK

_ADVICE = (
    "reserved memory grows while what is in use does not: set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, or "
    "feed fewer different shapes (pad to a few lengths)"
)


def unattributed(
    run: Mapping[str, Any],
    verdicts: Mapping[int, Verdict],
    places: Mapping[int, tuple[str, int]],
    shown: Mapping[str, str],
) -> list[Unattributed]:
    """What the loops of one process keep beyond what its sites keep. ``verdicts`` by site, ``places`` by loop,
    ``shown``: the paths of the program's files as reports show them."""
    found: list[Unattributed] = []
    for loop in run["loops"]:
        if not loop["readings"]:
            continue
        known = sum(
            _mean(verdicts[site["id"]])
            for site in run["sites"]
            if site["id"] in verdicts and _is_inside(site, loop) and verdicts[site["id"]].verdict in BAD
        )
        for device, each, stacks in growth(run, loop):
            left = each - known
            if left >= BLOCK and not _explained(run, loop, found):
                path, line = places[loop["id"]]
                rows = tuple(_stack(row, shown) for row in stacks)
                found.append(Unattributed(left, rows, device, f"{path}:{line}"))
    return found


def _mean(verdict: Verdict) -> int:
    per = verdict.bytes_per_iteration
    return 0 if per is None else (per.min + per.max) // 2


def _is_inside(site: Mapping[str, Any], loop: Mapping[str, Any]) -> bool:
    return bool(site["loops"]) and (site["loops"][-1] == loop["id"] if loop["inner"] else loop["id"] in site["loops"])


def _explained(run: Mapping[str, Any], loop: Mapping[str, Any], found: Sequence[Unattributed]) -> bool:
    """Whether the growth is that of a loop inside, which has been told."""
    return not loop["inner"] and bool(found)


def growth(run: Mapping[str, Any], loop: Mapping[str, Any]) -> Iterable[tuple[str, int, list[Mapping[str, Any]]]]:
    """What a loop whose window was read leaves: device, bytes an iteration, and where they were asked for."""
    survivors = loop["survivors"]
    if survivors is not None:
        judged = survivors["bytes"][:-1]
        half = len(judged) // 2
        if any(judged[:half]) and any(judged[half:]):
            stacks: list[Mapping[str, Any]] = [
                {"bytes_per_iteration": sum(row["bytes"][:-1]) // len(judged), "frames": row["frames"]}
                for row in survivors["stacks"]
                if any(row["bytes"][:half]) and any(row["bytes"][half:-1])
            ]
            yield "cpu", sum(judged) // len(judged), stacks
        return
    readings = loop["readings"]
    half = len(readings) // 2
    for device in readings[-1]["requested"]:
        held = [reading["requested"].get(device, 0) for reading in readings]
        if min(held[half:]) > max(held[:half]):
            each = round(statistics.fmean(after - before for before, after in itertools.pairwise(held)))
            located = [row for row in run["located"] or () if row["loop"] == loop["id"]]
            yield device, each, located


def _stack(row: Mapping[str, Any], shown: Mapping[str, str]) -> Stack:
    frames = tuple(
        Frame(shown.get(frame["path"], frame["path"]), frame["line"], frame["function"]) for frame in row["frames"]
    )
    return Stack(row["bytes_per_iteration"], frames)


def fragmentation(run: Mapping[str, Any]) -> list[Fragmentation]:
    """Devices on which reserved memory grew over a window while memory in use did not."""
    found: dict[str, Fragmentation] = {}
    for loop in run["loops"]:
        readings = [reading["fragments"] for reading in loop["readings"]]
        for device in readings[-1] if readings else ():
            first, last = readings[0].get(device, readings[-1][device]), readings[-1][device]
            grown = last["reserved"] - first["reserved"]
            idle = last["reserved"] - last["allocated"] - (first["reserved"] - first["allocated"])
            used = last["allocated"] - first["allocated"]
            if grown > 0 and idle > max(used, 0) and idle > first["reserved"] // 20:
                reserved, allocated, split = ((first[name], last[name]) for name in ("reserved", "allocated", "split"))
                found[device] = Fragmentation(device, reserved, allocated, split, _ADVICE)
    return list(found.values())
