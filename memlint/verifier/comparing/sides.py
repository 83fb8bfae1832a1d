"""What two runs of a program measured, beside each other. Pure: it reads what the children wrote."""

from __future__ import annotations

import math
import statistics
import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from memlint.verifier.judging.leftover import growth
from memlint.verifier.judging.verdicts import host_growth
from memlint.verifier.model import LoopSide, Side

Data = Mapping[str, Any]
Ranks = Sequence[Data]
#: fewer steps are no measurement of time
FEWEST_TIMED = 8


class Losses(msgspec.Struct, frozen=True):
    """How the losses of two runs compare, as `Comparison` says it. ``counts``: how many each run had."""

    losses: Literal["equal", "different", "unknown"]
    largest_difference: float | None
    compared: int
    counts: tuple[int, int] = (0, 0)


def side(ranks: Ranks, warmup: int, timed: Ranks | None = None) -> Side:
    """One run in numbers; of several ranks the worst. ``timed``: the run that tells its step time, if not this one."""
    each = [loop for one in ranks for loop in loop_sides(one, warmup).values()]
    others = each if timed is None else [loop for one in timed for loop in loop_sides(one, warmup).values()]
    busiest = max(others, key=lambda loop: loop.steps, default=None)
    return Side(
        peak=peak(ranks),
        bytes_per_iteration=_most(loop.bytes_per_iteration for loop in each),
        host_bytes_per_iteration=_most(loop.host_bytes_per_iteration for loop in each),
        step_seconds=None if busiest is None else busiest.step_seconds,
        steps=max((loop.steps for loop in each), default=0),
        step_spread=None if busiest is None else busiest.step_spread,
    )


def loop_sides(run: Data, warmup: int) -> dict[int, LoopSide]:
    """The innermost loops of one process that ran, by id."""
    return {loop["id"]: loop_side(run, loop, warmup) for loop in run["loops"] if loop["tops"] and loop["inner"]}


def loop_side(run: Data, loop: Data, warmup: int) -> LoopSide:
    """One loop of one process in numbers."""
    read = bool(loop["readings"])
    return LoopSide(
        bytes_per_iteration=sum(each for _, each, _ in growth(run, loop)) if read else None,
        host_bytes_per_iteration=host_growth(loop["readings"]) if read else None,
        step_seconds=median_time(loop["seconds"], warmup),
        steps=loop["tops"],
        step_spread=spread(loop["seconds"], warmup),
    )


def spread(seconds: Sequence[float], warmup: int) -> tuple[float, float] | None:
    """Between which times the middle half of the iterations after the warm-up lies."""
    timed = seconds[warmup:]
    if len(timed) < 2:
        return None
    first, _, third = statistics.quantiles(timed, n=4)
    return first, third


def median_time(seconds: Sequence[float], warmup: int) -> float | None:
    """The median time of an iteration after the warm-up."""
    timed = seconds[warmup:]
    return statistics.median(timed) if timed else None


def peak(ranks: Ranks) -> int | None:
    """The most that any device of any rank held at once."""
    return _most(count for one in ranks for count in one["peak"].values())


def peak_saved(before: Ranks, after: Ranks) -> int | None:
    """By how much the peak falls on the device where it was highest."""
    held = {(rank, device): count for rank, one in enumerate(before) for device, count in one["peak"].items()}
    if not held:
        return None
    rank, device = max(held, key=lambda key: held[key])
    if rank >= len(after) or device not in after[rank]["peak"]:
        return None
    return int(held[rank, device]) - int(after[rank]["peak"][device])


def faster(before: Sequence[float], after: Sequence[float], warmup: int) -> tuple[float, bool] | None:
    """The share by which the median step time falls, and whether that can be told from noise: the lower quartile, which
    other work on the machine does not raise as much, has to agree. None where too few steps were timed."""
    one, other = before[warmup:], after[warmup:]
    if len(one) < FEWEST_TIMED or len(other) < FEWEST_TIMED:
        return None
    shares = [
        1 - now / was
        for was, now in zip(statistics.quantiles(one, n=4)[:2], statistics.quantiles(other, n=4)[:2], strict=True)
    ]
    return shares[1], (shares[0] > 0) == (shares[1] > 0)


def losses(before: Ranks, after: Ranks) -> Losses:
    """The losses of two runs, rank by rank, as far as both made them."""
    compared, largest, counts = 0, 0.0, (0, 0)
    equal = True
    for one, other in zip(before, after, strict=False):
        mine, theirs = one["losses"] or (), other["losses"] or ()
        counts = counts[0] + len(mine), counts[1] + len(theirs)
        for was, now in zip(mine, theirs, strict=False):
            compared += 1
            if struct.pack("d", was) != struct.pack("d", now) and not (math.isnan(was) and math.isnan(now)):
                equal = False
                difference = abs(was - now)
                # not a number on one side alone is as different as can be
                largest = max(largest, math.inf if math.isnan(difference) else difference)
    if not compared:
        return Losses("unknown", None, 0, counts)
    return Losses("equal" if equal else "different", None if equal else largest, compared, counts)


def _most(values: Iterable[int | None]) -> int | None:
    return max((value for value in values if value is not None), default=None)
