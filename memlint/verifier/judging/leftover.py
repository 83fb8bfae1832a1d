"""Unexplained growth, and memory that is reserved and unusable."""

from __future__ import annotations

import re
import statistics
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

from memlint.measure.memory.halves import by_half, rises
from memlint.measure.memory.host import NOISE, rises_in_workers, rises_on_host
from memlint.verifier.judging.holders import holders
from memlint.verifier.judging.rings import filled, objects, without_rings
from memlint.verifier.judging.verdicts import BLOCK, by_iteration, host_growth
from memlint.verifier.model import BAD, HOST, WORKERS, Fragmentation, Frame, Stack, Unattributed, Verdict

#: two segments of the allocator for tensors of 1 to 10 MiB, which a healthy program may leave unused
_SEGMENTS = 2 * 20 * 2**20


def unattributed(
    run: Mapping[str, Any],
    verdicts: Mapping[int, Verdict],
    names: Mapping[int, str],
    shown: Mapping[str, str],
) -> list[Unattributed]:
    """What the loops of one process keep beyond what its sites keep. ``verdicts`` by site, ``names`` by loop,
    ``shown``: the paths of the program's files as reports show them."""
    bad = {number for number, verdict in verdicts.items() if verdict.verdict in {*BAD, "bounded"}}
    found: list[Unattributed] = []
    told: set[tuple[Any, ...]] = set()
    for loop in sorted(run["loops"], key=lambda loop: not loop["inner"]):
        if not loop["readings"]:
            continue
        for device, each, stacks in growth(run, loop, bad):
            # one growth appears in each loop that runs meanwhile: around it, or beside it in a generator
            where = [(device, *((frame["path"], frame["line"]) for frame in row["frames"])) for row in stacks]
            if each < BLOCK or (where and told.issuperset(where)) or (not where and found):
                continue
            told.update(where)
            rows = tuple(_stack(row, shown) for row in stacks)
            found.append(Unattributed(each, rows, device, names[loop["id"]]))
    # held tensors also hold their graph's nodes and their records on the host
    explained = found or any(verdict.verdict in BAD for verdict in verdicts.values())
    return found if explained else _on_host(run, verdicts, names, shown)


def _on_host(
    run: Mapping[str, Any], verdicts: Mapping[int, Verdict], names: Mapping[int, str], shown: Mapping[str, str]
) -> list[Unattributed]:
    """What loops leave of host memory beside tensors: arrays, lists, graph nodes. A loop that runs meanwhile in a
    generator, around another or beside it shows the same growth: the innermost tells it."""
    nodes = {number for number, verdict in verdicts.items() if verdict.graph_nodes_per_iteration}
    found: list[Unattributed] = []
    told: set[int] = set()
    for loop in sorted(run["loops"], key=lambda loop: (not loop["inner"], "clock" in loop)):
        readings = loop["readings"]
        if not readings or told.intersection((loop["id"], *loop["outer"])) or (told and "clock" in loop):
            continue
        within = {one["id"] for one in run["loops"] if loop["id"] in one["outer"]}
        if told & within:
            continue
        sites = [site["id"] for site in run["sites"] if _is_inside(site, loop)]
        if rises_on_host(readings, loop.get("host_settled")) and not nodes.intersection(sites):
            each = host_growth(readings) or 0
            if each < NOISE or each <= beside_rings(run, loop):
                continue
            rows = [row for row in run.get("traced") or () if row["loop"] == loop["id"]]
            stacks = tuple(_stack(row, shown) for row in rows)
            found.append(Unattributed(each, stacks, HOST, names[loop["id"]], resident=_a_step(readings, "rss")))
            told.add(loop["id"])
        elif rises_in_workers(readings):
            found.append(Unattributed(_a_step(readings, "workers") or 0, (), WORKERS, names[loop["id"]]))
            told.add(loop["id"])
    return found


def _a_step(readings: Sequence[Mapping[str, Any]], what: str) -> int | None:
    """The mean increase of a reading per iteration."""
    if what not in readings[0] or what not in readings[-1]:
        return None
    return int(readings[-1][what] - readings[0][what]) // (len(readings) - 1)


def growth(
    run: Mapping[str, Any], loop: Mapping[str, Any], bad: Container[int] = frozenset()
) -> Iterable[tuple[str, int, list[Mapping[str, Any]]]]:
    """What a loop whose window was read leaves: device, bytes an iteration, and where they were asked for. ``bad``: the
    sites that explain what they keep."""
    found = list(_all_growth(run, loop, bad))
    for device, each, stacks in found:
        # the accelerator's allocator does not separate the devices of allocations
        rest, rows = without_rings(run, device, each, stacks) if len(found) == 1 else (each, stacks)
        if rest == each or rest >= BLOCK:
            yield device, rest, rows


def rings(run: Mapping[str, Any], loop: Mapping[str, Any]) -> dict[str, int]:
    """The rings that a loop fills, each with its approximate bytes when full."""
    found: dict[str, int] = {}
    for device, stacks in _located(run, loop):
        for path, size in filled(run, device, stacks):
            found[path] = found.get(path, 0) + size
    return found


def beside_rings(run: Mapping[str, Any], loop: Mapping[str, Any]) -> int:
    """The bytes of host memory an iteration that the elements of rings may take which it, or a loop in it, fills."""
    tops = max(1, int(loop["tops"]))
    return max(
        sum(objects(run, device, stacks) for device, stacks in _located(run, one)) * int(one["tops"]) // tops
        for one in run["loops"]
        if one["id"] == loop["id"] or loop["id"] in one["outer"]
    )


def _located(run: Mapping[str, Any], loop: Mapping[str, Any]) -> Iterable[tuple[str, list[Mapping[str, Any]]]]:
    """The device on which a loop leaves something, and where: on one alone, since the places that an accelerator's
    allocator tells are of all devices."""
    found = list(_all_growth(run, loop)) if loop["readings"] else []
    return [(device, stacks) for device, _, stacks in found] if len(found) == 1 else []


def _all_growth(
    run: Mapping[str, Any], loop: Mapping[str, Any], bad: Container[int] = frozenset()
) -> Iterable[tuple[str, int, list[Mapping[str, Any]]]]:
    """As `growth`, and what fills rings beside."""
    survivors = loop["survivors"]
    if survivors is not None:
        yield from _survived(survivors, bad)
    ever_more = list(_rising(loop))
    if survivors is not None and (any(row["bytes"] for row in survivors["stacks"]) or not ever_more):
        return
    for device, each in ever_more:
        if survivors is not None:  # one growing tensor, allocated again each time
            if 4 * sum(row["bytes"] for row in survivors["latest"]) < each * (len(loop["readings"]) - 1):
                continue  # its memory was freed, and other memory has come
            rows: list[Mapping[str, Any]] = [{**row, "bytes_per_iteration": each} for row in survivors["latest"][:1]]
            yield device, each, rows
        elif device != "cpu":
            known = sum(_known(site) for site in run["sites"] if site["id"] in bad and _is_inside(site, loop))
            located = [row for row in run["located"] or () if row["loop"] == loop["id"]]
            if not located and any(site["id"] in bad for site in run["sites"]):
                continue  # a site in another generator or thread may hold it
            yield device, each - known, located


def _survived(survivors: Mapping[str, Any], bad: Container[int]) -> Iterable[tuple[str, int, list[Mapping[str, Any]]]]:
    groups = [group["bytes"][:-1] for group in survivors["groups"] if not any(site in bad for site in group["sites"])]
    judged = [sum(row) for row in zip(*groups, strict=True)]
    if not all(by_half(judged)):
        return
    stacks: list[Mapping[str, Any]] = [
        {**row, "bytes_per_iteration": sum(row["bytes"][:-1]) // len(judged)}
        for row in survivors["stacks"]
        if all(by_half(row["bytes"][:-1])) and not any(site in bad for site in row["sites"])
    ]
    yield "cpu", sum(judged) // len(judged), stacks


def _rising(loop: Mapping[str, Any]) -> Iterable[tuple[str, int]]:
    """The same, without memory that was freed since."""
    readings = loop["readings"]
    for device, each in rising(readings):
        held = [reading["requested"].get(device, 0) for reading in readings]
        settled = (loop.get("settled") or {}).get(device, held[-1])
        if rises([*held[:-1], min(held[-1], settled)]):  # garbage collection has freed cycles
            yield device, each


def rising(readings: Sequence[Mapping[str, Any]]) -> Iterable[tuple[str, int]]:
    """Devices that held more at each top of the second half than ever in the first, and the bytes an iteration."""
    for device in readings[-1]["requested"] if readings else ():
        held = [reading["requested"].get(device, 0) for reading in readings]
        if rises(held):
            yield device, (held[-1] - held[0]) // (len(held) - 1)


def _known(site: Mapping[str, Any]) -> int:
    """What an iteration leaves at a site and at none before it: a model call and the store of its output keep the same
    graph."""
    windows = [check for check in site["checks"] if check["when"] == "window"] or site["checks"][-1:]
    values = by_iteration(site, windows[0], min(3, len(site["iterations"]) // 2)) if windows else []
    # the first and the last iteration may be incomplete
    return round(statistics.median(values)) if values else 0


def _is_inside(site: Mapping[str, Any], loop: Mapping[str, Any]) -> bool:
    # what a library calls is in all loops of libraries that turn meanwhile
    return loop["id"] in site["loops"] or ("clock" in loop and not site["loops"])


def _stack(row: Mapping[str, Any], shown: Mapping[str, str]) -> Stack:
    frames = tuple(
        Frame(shown.get(frame["path"], frame["path"]), frame["line"], frame["function"]) for frame in row["frames"]
    )
    return Stack(row["bytes_per_iteration"], frames, holders(row.get("holders", ()), shown))


def fragmentation(run: Mapping[str, Any]) -> list[Fragmentation]:
    """Devices on which more and more is reserved that nothing has ever used: what a step frees before its end counts as
    used, so a program that needs more memory at its peak is no such."""
    found: dict[str, Fragmentation] = {}
    for loop in run["loops"]:
        readings = [reading["fragments"] for reading in loop["readings"]]
        for device in readings[-1] if readings else ():
            rows = [reading[device] for reading in readings if device in reading]
            first, middle, last = (_unused(rows[place]) for place in (0, len(rows) // 2, -1))
            # a single segment, for an optimizer's state, is no growth
            if first < middle < last and last - first > max(_SEGMENTS, rows[-1]["reserved"] // 10):
                both = {name: (rows[0][name], rows[-1][name]) for name in ("reserved", "peak", "allocated", "split")}
                advice = (
                    f"memory is reserved in pieces that later tensors do not fit in: {_setting(run)}, or feed fewer "
                    "different shapes (pad to a few lengths)"
                )
                found[device] = Fragmentation(device, advice=advice, **both)
    return list(found.values())


def _setting(run: Mapping[str, Any]) -> str:
    """The setting that makes reserved memory usable for other shapes."""
    return f"set {run.get('allocator_variable') or 'PYTORCH_CUDA_ALLOC_CONF'}=expandable_segments:True"


def out_of_memory(run: Mapping[str, Any]) -> str:
    """After the allocator has given up: whether a setting of it would have helped, a sentence. Empty where it has not,
    or where its message does not say."""
    message = run["end"].get("message") or ""
    asked, unused = (_amount(message, each) for each in (_ASKED, _UNUSED))
    if asked is None or unused is None:
        return ""
    device = match[1] if (match := _GPU.search(message)) else "?"
    said = f"cuda:{device} was out of memory: {asked} were asked for"
    if _bytes(unused) >= _bytes(asked):
        return f"{said}, {unused} were reserved and not in use, in pieces that are too small: {_setting(run)}"
    return f"{said}, and no setting of the allocator would have helped: it had reserved no more than {unused} unused"


_ASKED = re.compile(r"Tried to allocate ([\d.]+ \w+)")
_UNUSED = re.compile(r"([\d.]+ \w+) is reserved by PyTorch but unallocated")
_GPU = re.compile(r"GPU (\d+) has")
_UNITS = {"bytes": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}


def _amount(message: str, of: re.Pattern[str]) -> str | None:
    """An amount in the message's own unit, if that is known."""
    match = of.search(message)
    return match[1] if match is not None and match[1].split()[1] in _UNITS else None


def _bytes(amount: str) -> float:
    number, unit = amount.split()
    return float(number) * _UNITS[unit]


def _unused(row: Mapping[str, int]) -> int:
    return max(row["reserved"] - row["peak"], 0)
