"""Verdicts on sites, by the memory that they and their loops left. Pure: it reads what the child wrote."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from memlint.amounts import plural
from memlint.finding import Growth
from memlint.measure.memory.halves import by_half
from memlint.measure.memory.host import NOISE
from memlint.verifier.judging.site_runs import clearest, emptied, keeping, loops_around, peak, release, start, used
from memlint.verifier.model import PerIteration, Verdict

#: the smallest block of an accelerator's allocator: less than this an iteration is no leak of tensors
BLOCK = 512
#: the reason if only a comparison of two runs can decide
NEEDS_COMPARISON = "needs --compare-fix"
#: the verdicts that a loop's runs may overrule
_OVERRULED = frozenset({"bounded", "refuted", "too-few-iterations"})
#: beyond the warm-up, so few hits may confirm, but never refute
FEWEST = 4


class Settings(msgspec.Struct, frozen=True):
    """``warmup`` and ``window``: hits and iterations. ``ended``: why the program ended, a clause. ``places``: of the
    findings, by the number of their site. ``shown``: the paths of the program's files as reports show them."""

    warmup: int
    window: int
    ended: str = ""
    places: Mapping[int, str] = {}
    shown: Mapping[str, str] = {}


class Generations(msgspec.Struct, frozen=True):
    """The memory that the judged hits left, one number per hit, at one time. ``before``: before garbage was
    collected."""

    alive: tuple[int, ...]
    before: tuple[int, ...]
    nodes: tuple[int, ...]

    def survives(self, values: Sequence[int]) -> str:
        """Which halves left something: both, first, second or none. The last hit's may still be in use."""
        first, second = by_half(values[:-1])
        return "both" if first and second else "first" if first else "second" if second else "none"


def judge(
    claim: Growth, site: Mapping[str, Any], loops: Mapping[int, Mapping[str, Any]], run: Mapping[str, Any], of: Settings
) -> Verdict:
    """The verdict on one claim. Where the hits of all runs together show no growth, those of each run may: what is
    freed with each run is not there when the window is over that many short ones fill."""
    verdict = _over_all_runs(claim, site, loops, run, of)
    if claim.kind == "per-epoch" or verdict.reason == NEEDS_COMPARISON:
        return verdict
    if used(site) and verdict.verdict in {*_OVERRULED, "confirmed", "confirmed-host"}:
        reason = "a backward() behind the loop uses what each run of it keeps, and then it is freed"
        return Verdict(verdict="bounded", reason=reason, hits=int(site["hits"]))
    runs = keeping(site) if verdict.verdict in _OVERRULED else ()
    if not runs:
        return verdict
    one = clearest(runs)
    first = start(one)
    in_run = {**site, "iterations": one["iterations"]}
    return _Measured(in_run, loops, run, _generations(one, first), one, first, of).kept_by_runs(runs, peak(one)[0])


def _over_all_runs(
    claim: Growth, site: Mapping[str, Any], loops: Mapping[int, Mapping[str, Any]], run: Mapping[str, Any], of: Settings
) -> Verdict:
    """The verdict by the first hits, in any run."""
    hits = int(site["hits"])
    if (refusal := _refusal(claim, site, run, of)) is not None:
        return refusal
    full = len(site["iterations"]) >= of.warmup + of.window
    windows = [check for check in site["checks"] if check["when"] == "window"]
    check = windows[0] if full and windows else max(site["checks"], key=_total)
    start = of.warmup if full else min(of.warmup, max(0, len(site["iterations"]) - FEWEST - 1))
    seen = _generations(check, start)
    enough = full or len(seen.alive) > FEWEST
    if not enough:
        return Verdict(verdict="too-few-iterations", reason=_too_few(hits, of), hits=hits)
    if claim.kind == "per-epoch" and full and not _spans_runs(site) and len(loops) > 1 and len(site["loops"]) > 1:
        return Verdict(
            verdict="too-few-iterations",
            reason="the claim is of growth from epoch to epoch, and only one was run; let it run longer by --full",
            hits=hits,
        )
    measured = _Measured(site, loops, run, seen, check, start, of)
    if (where := emptied(site, of.shown)) is not None:
        return measured.emptied(where)
    # if the program ended before a second window: the state at the end of a loop around the site
    since = [one for one in site["checks"] if one["when"] == "exit" and one["hits"] > check["hits"]]
    later = (windows[1:] or since) if full else []
    return measured.verdict(full, [_generations(other, start) for other in later])


def _refusal(claim: Growth, site: Mapping[str, Any], run: Mapping[str, Any], of: Settings) -> Verdict | None:
    """The verdict where nothing can be measured."""
    hits = int(site["hits"])

    def cannot(reason: str) -> Verdict:
        return Verdict(verdict="unmeasurable", reason=reason, hits=hits)

    if run["end"]["kind"] == "broken":
        return cannot("memlint's probes failed in this program, which is a mistake of memlint")
    if site["id"] in run["missing"]:
        return cannot("the running Python cannot read this file, or finds no statement at this place")
    if run["torch"] is None:
        return cannot("the program never imported torch in its main process")
    if run["unmeasurable"]:
        return cannot(str(run["unmeasurable"]))
    if not hits and run.get("compiled"):
        return cannot("this statement was never run as Python; torch.compile has compiled parts of this program")
    if not hits:
        where = " in the program's main process (it has others)" if run.get("processes") else ""
        return Verdict(verdict="not-reached", reason=f"this statement was never run{where}{of.ended}", hits=0)
    if claim.kind in ("peak", "time") or claim.memory == "none":
        return cannot(NEEDS_COMPARISON)
    if not site["iterations"]:
        return cannot("this statement was run before torch was imported")
    if not site["checks"]:  # the remaining memory is unknown
        return Verdict(verdict="too-few-iterations", reason=_too_few(hits, of), hits=hits)
    return None


def _total(check: Mapping[str, Any]) -> int:
    return sum(int(sum(alive.values())) for alive in check["alive"]) + int(sum(check["nodes"]))


def _generations(check: Mapping[str, Any], start: int) -> Generations:
    return Generations(
        tuple(sum(alive.values()) for alive in check["alive"][start:]),
        tuple(sum(alive.values()) for alive in check["before"][start:]),
        tuple(check["nodes"][start:]),
    )


def _too_few(hits: int, of: Settings) -> str:
    return (
        f"this statement was run {plural(hits, 'time')}{of.ended}; judging it takes "
        f"{of.warmup + of.window} (set by --warmup and --window)"
    )


def _spans_runs(site: Mapping[str, Any]) -> bool:
    return len({run for run, _ in site["iterations"]}) > 1


class _Measured:
    """One site's window in the numbers of a verdict."""

    def __init__(
        self,
        site: Mapping[str, Any],
        loops: Mapping[int, Mapping[str, Any]],
        run: Mapping[str, Any],
        seen: Generations,
        check: Mapping[str, Any],
        start: int,
        of: Settings,
    ) -> None:
        self.site = site
        self.run = run
        self.seen = seen
        self.check = check
        self.start = start
        self.of = of
        around = loops_around(site)
        self.loop = loops.get(around[-1]) if around else None
        self.hits = int(site["hits"])

    def verdict(self, full: bool, later: Sequence[Generations]) -> Verdict:
        seen = self.seen
        tensors, nodes, before = (
            seen.survives(seen.alive),
            seen.survives(seen.nodes),
            seen.survives(seen.before),
        )
        if not full:  # few hits distinguish a leak from a ring only if none of them was freed
            tensors, nodes = (
                name if self._all_stay(what) else "none" for name, what in ((tensors, "alive"), (nodes, "nodes"))
            )
        freed = any(other.survives(other.alive) in ("none", "second") for other in later)
        if tensors == "both" and not freed and self._counts():
            return self._confirmed(full)
        if nodes == "both" and not any(other.survives(other.nodes) in ("none", "second") for other in later):
            return self._host(full)
        if tensors == "both" and not freed:
            return self._confirmed(full)
        if before == "both" and seen.survives(seen.alive) in ("none", "second"):
            freed_bytes = sum(seen.before) - sum(seen.alive)
            reason = f"only the garbage collector frees what it keeps ({freed_bytes:,} B in this window): a cycle"
            return self._make("cycle", reason, held=sum(seen.before))
        if not full:
            return Verdict(verdict="too-few-iterations", reason=_too_few(self.hits, self.of), hits=self.hits)
        if tensors == "none":
            tensors = nodes
        if tensors == "both":
            return self._make("bounded", "what it keeps was freed later: it grows only so far, then is emptied")
        if tensors == "first":
            return self._make("bounded", "only early iterations left something, as a cache does that has filled")
        if tensors == "second":
            return self._make("bounded", "only the latest iterations are still held, as in a ring or an accumulation")
        return self._nothing()

    def kept_by_runs(self, runs: Sequence[Mapping[str, Any]], held: int) -> Verdict:
        """All stays until a run ends, in each of ``runs``. ``held``: what one of them held then."""
        hits = sorted({one["hits"] for one in runs})
        several = f"{hits[0]:,}" if len(hits) == 1 else f"{hits[0]:,} to {hits[-1]:,}"
        seen = f", until the loop ends (in each of {len(runs)} runs of {several} hits)"
        if self.seen.survives(self.seen.alive) != "none" and self._counts():
            return self._confirmed(True, seen, held)
        return self._host(True, seen)

    def emptied(self, where: str) -> Verdict:
        """A caller in a loop empties the place."""
        return self._make("bounded", f"what it keeps is freed again and again ({where}): it grows only so far")

    def _nothing(self) -> Verdict:
        """Nothing of the window's hits stays; the verdict depends on later ones."""
        late = [one for one in self.site.get("late", ()) if one["walked"]]
        stay = len(self.site.get("late", ()))
        if len(late) > FEWEST:
            return self._now_and_then(late)
        if self._stayed_to_an_exit():
            return self._make("bounded", "what it keeps is freed when the loop around it has ended: it grows to there")
        if stay:
            reason = f"of {self.hits} hits {stay} left something that stays, which is too few to say that it grows"
            return Verdict(verdict="too-few-iterations", reason=reason, hits=self.hits)
        if self.site.get("cut"):
            return Verdict(
                verdict="unmeasurable", reason="what this statement keeps is too large to be followed", hits=self.hits
            )
        reason = f"nothing that {self.of.window} hits kept was alive at the window's end"
        return self._make("refuted", reason, held=sum(self.seen.alive))

    def _stayed_to_an_exit(self) -> bool:
        """Whether a loop of fewer iterations than a window kept what they left until it ended."""
        exits = (_generations(check, self.start) for check in self.site["checks"] if check["when"] == "exit")
        return any(
            len(kept.alive) > FEWEST and "both" in (kept.survives(kept.alive), kept.survives(kept.nodes))
            for kept in exits
        )

    def _now_and_then(self, late: Sequence[Mapping[str, Any]]) -> Verdict:
        """Few hits leave memory."""
        device = max((name for one in late for name in one["alive"]), default=self._device())
        each = [int(one["alive"].get(device, 0)) for one in late]
        span = late[-1]["hit"] - late[0]["hit"]
        nodes = round(statistics.fmean(one["nodes"] for one in late))
        if not any(each) and not nodes:
            return Verdict(verdict="too-few-iterations", reason=_too_few(self.hits, self.of), hits=self.hits)
        mean = sum(each[1:]) // max(span, 1)
        kept = f"{min(each):,} B" if min(each) == max(each) else f"{min(each):,} to {max(each):,} B"
        host = max(each) <= BLOCK and nodes
        what = plural(nodes, "node") + " of the autograd graph" if host else f"{kept} of tensors on {device}"
        left = self.run["free"].get(device)
        return Verdict(
            verdict="confirmed-host" if host else "confirmed",
            reason=f"now and then an iteration leaves {what} (as {len(late)} of the last {span + 1} hits did)",
            device=device,
            bytes_per_iteration=PerIteration(0, max(each), None, mean),
            host_bytes_per_iteration=self._host_bytes(),
            graph_nodes_per_iteration=nodes,
            held_bytes=sum(each),
            hits=self.hits,
            iterations_until_full=None if host or left is None or not mean else left // mean,
        )

    def _all_stay(self, what: str) -> bool:
        """Whether every hit but the last left something. The first one's values were there before it was looked at."""
        kept = self.check[what][1:-1]
        return all(any(each.values()) if isinstance(each, dict) else each for each in kept)

    def _counts(self) -> bool:
        """Whether the tensors that stay are more than single numbers beside a graph that grows on the host."""
        per = self._per_iteration()
        small = per is not None and per.max <= BLOCK
        return not (small and self.seen.survives(self.seen.nodes) == "both")

    def _confirmed(self, full: bool, until: str = "", held: int | None = None) -> Verdict:
        per = self._per_iteration()
        assert per is not None
        grown = per.mean
        said = f"{per.exact:,} B" if per.exact is not None else f"{per.min:,} to {per.max:,} B"
        average = "" if per.exact is not None else f", {per.mean:,} B on average"
        average += self._shared() + until + self._after(full)
        reason = f"each iteration leaves {said} of tensors on {self._device()}{average}"
        left = None if release(self.site, self.of.shown) else self.run["free"].get(self._device())
        return self._make("confirmed", reason, held, until=None if left is None or not grown else left // grown)

    def _shared(self) -> str:
        """The other findings that share a part of it: a sum over findings would count it twice."""
        judged = self.check.get("shared_with", ())[self.start : -1]
        places = [self.of.places[site] for site in sorted({site for each in judged for site in each})]
        every = [sum(alive.values()) - own for alive, own in zip(self.check["alive"], self.check["own"], strict=True)]
        both = round(statistics.fmean(_each_iteration(self.site, every, self.start) or (0,)))
        return f", {both:,} B of which count for {' and '.join(places)} as well" if places and both > 0 else ""

    def _host(self, full: bool, until: str = "") -> Verdict:
        nodes = self._nodes()
        host = self._host_bytes()
        said = "" if host is None or host < NOISE else f", {host:,} B of host memory"
        said = f"each iteration leaves {plural(nodes, 'node')} of the autograd graph{said}{until}"
        return self._make("confirmed-host", said + self._after(full, sized=False))

    def _after(self, full: bool, *, sized: bool = True) -> str:
        """What happened to it after the loop."""
        said = "" if full else f" (seen over {len(self.seen.alive) - 1} hits only)"
        if (freed := release(self.site, self.of.shown, sized=sized)) is not None:
            return f"{said}; {freed}"
        ends = [check for check in self.site["checks"] if check["when"] in ("exit", "end")]
        if ends and self.site["loops"] and not any(_total(check) for check in ends[-1:]):
            return f"{said}; all of it is freed when the loop's function is left"
        return said

    def _make(self, name: Any, reason: str, held: int | None = None, until: int | None = None) -> Verdict:
        grows = name in ("confirmed", "confirmed-host")
        return Verdict(
            verdict=name,
            reason=reason,
            device=self._device(),
            bytes_per_iteration=self._per_iteration() if grows else None,
            host_bytes_per_iteration=self._host_bytes() if grows else None,
            graph_nodes_per_iteration=self._nodes() if grows else None,
            held_bytes=held if held is not None else sum(self.seen.alive),
            hits=self.hits,
            iterations_until_full=until,
        )

    def _device(self) -> str:
        """The device with the largest share."""
        totals: dict[str, int] = {}
        for alive in self.check["alive"]:
            for device, count in alive.items():
                totals[device] = totals.get(device, 0) + count
        meter = self.run["meter"]
        default = "cpu" if meter in ("cpu", "none") else f"{meter}:0"
        return max(totals, key=lambda device: totals[device]) if any(totals.values()) else default

    def _per_iteration(self) -> PerIteration | None:
        """What stays of each iteration of the innermost loop around the site, on the device that most of it is on."""
        values = by_iteration(self.site, self.check, self.start, self._device())
        if not values:
            return None
        least, most = min(values), max(values)
        return PerIteration(least, most, least if least == most else None, round(statistics.fmean(values)))

    def _nodes(self) -> int:
        values = self.seen.nodes[:-1]
        return round(statistics.fmean(values)) if values else 0

    def _host_bytes(self) -> int | None:
        return None if self.loop is None else host_growth(self.loop["readings"])


def host_growth(readings: Sequence[Mapping[str, Any]]) -> int | None:
    """What an iteration leaves of host memory beside tensors: the median over a window's readings."""
    gained = [
        after["host"] - before["host"] - _cpu(after) + _cpu(before)
        for before, after in itertools.pairwise(readings)
        if "host" in before and "host" in after
    ]
    return round(statistics.median(gained)) if gained else None


def by_iteration(site: Mapping[str, Any], check: Mapping[str, Any], start: int, device: str | None = None) -> list[int]:
    """What stays of each iteration of the innermost loop around a site, by the hits from ``start`` on: on ``device``,
    or, without one, what no other site keeps as well."""
    kept = check["own"] if device is None else [alive.get(device, 0) for alive in check["alive"]]
    return _each_iteration(site, kept, start)


def _each_iteration(site: Mapping[str, Any], kept: Sequence[int], start: int) -> list[int]:
    """What is ``kept`` of the hits from ``start`` on, for each iteration. One of which only some hits are judged, the
    first or the last, counts where there is no other."""
    iterations = [(run, number) for run, number in site["iterations"]]
    every: dict[tuple[int, int], int] = {}
    for iteration, left in zip(iterations[start:-1], kept[start:-1], strict=False):
        every[iteration] = every.get(iteration, 0) + left
    cut = {*iterations[max(start - 1, 0) : start], *iterations[-1:]}
    by = {iteration: left for iteration, left in every.items() if iteration not in cut} or every
    # iterations that did not reach this place left nothing there
    for run in {run for run, _ in by} if site["loops"] else ():
        numbers = [number for each, number in by if each == run]
        for number in range(min(numbers), max(numbers)):
            by.setdefault((run, number), 0)
    return list(by.values())


def _cpu(reading: Mapping[str, Any]) -> int:
    return int(reading["requested"].get("cpu", 0))
