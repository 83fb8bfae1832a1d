"""The bill of a run: the memory that each loop was observed to leave, and how far it was observed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from memlint.measure.loops.short import LEAST, LEAST_ALONE
from memlint.measure.memory.host import rises_on_host
from memlint.verifier.judging.leftover import beside_rings, growth, rings, rising
from memlint.verifier.judging.site_runs import loops_around
from memlint.verifier.judging.verdicts import BLOCK, host_growth
from memlint.verifier.model import BAD, HOST, LoopBill, Verdict


def bill(
    run: Mapping[str, Any], names: Mapping[int, str], warmup: int, window: int, verdicts: Mapping[int, Verdict]
) -> tuple[LoopBill, ...]:
    """The loops of one process, by their ``names``, in the order of these. ``verdicts`` by site."""
    bad = {number for number, verdict in verdicts.items() if verdict.verdict in BAD - {"peak-only"}}
    flagged = {around[-1] for site in run["sites"] if site["id"] in bad and (around := loops_around(site))}
    found = [
        _loop(run, loop, names[loop["id"]], warmup + window, loop["id"] in flagged)
        for loop in run["loops"]
        if loop["id"] in names
    ]
    return tuple(sorted(found, key=lambda one: one.place.rpartition(":")[0]))


def _loop(run: Mapping[str, Any], loop: Mapping[str, Any], place: str, needed: int, flagged: bool) -> LoopBill:
    read = bool(loop["readings"])
    left: dict[str, int] = dict.fromkeys(loop["readings"][-1]["requested"], 0) if read else {}
    short = {} if read else loop.get("short") or {}
    told = bool(short.get("tells"))
    for device, each, _ in growth(run, loop) if read else ():
        left[device] = left.get(device, 0) + (each if each >= BLOCK else 0)
    passing = {
        device: each
        for device, each in rising(loop["readings"] if read else ())
        if each >= BLOCK and not left.get(device)
    }
    host = host_growth(loop["readings"]) if read else None
    if host is not None and not rises_on_host(loop["readings"]):
        host = 0
    if host and not rises_on_host(loop["readings"], loop.get("host_settled")):
        passing[HOST], host = host, 0
    if told:
        left = dict.fromkeys(short["passing"], 0)
        passing = {device: each for device, each in short["passing"].items() if each >= BLOCK}
    fills, beside = rings(run, loop), beside_rings(run, loop)
    if beside:  # what an inner loop puts into a ring is not freed in any iteration
        passing = {device: each for device, each in passing.items() if device == HOST and each > beside}
        host = None if host is None else 0 if host <= beside else host
    return LoopBill(
        place=place,
        iterations=loop["tops"],
        runs=loop["runs"],
        longest=loop["longest"],
        bytes_per_iteration=left if read or told else None,
        host_bytes_per_iteration=host,
        until_its_end=passing,
        fills=fills,
        reason="" if read or told else _why_not(run, loop, needed),
        findings=flagged,
    )


def _why_not(run: Mapping[str, Any], loop: Mapping[str, Any], needed: int) -> str:
    if not loop["tops"]:
        return "never run; --full lets the program run on"
    if any(one["loop"] == loop["id"] for site in run["sites"] for one in site.get("runs", ())):
        return "its runs are short, and judged by what the findings in it keep"
    if loop["longest"] <= needed:
        alone = LEAST_ALONE if run.get("meter") == "cpu" and loop["longest"] < LEAST_ALONE else needed + 1
        several = f", or two of {LEAST}" if alone > LEAST else ""
        return f"too short to be read: that takes a run of {alone} iterations{several}"
    return "the program ended before its window did; --full lets it run on"


def peak(ranks: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """The peak memory on each device."""
    found: dict[str, int] = {}
    for one in ranks:
        for device, count in one["peak"].items():
            found[device] = max(count, found.get(device, 0))
    return found
