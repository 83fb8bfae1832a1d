"""Evidence by runs of the loop around a site: a place whose hits all stay until the loop ends, in each run, holds its
memory for the length of the loop, however few iterations that are."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from memlint.measure.sites.site_runs import ENOUGH, HITS_ENOUGH

Run = Mapping[str, Any]


def keeping(site: Mapping[str, Any]) -> list[Run]:
    """The runs at whose end all was there that their hits had left; empty where they do not tell. What goes little by
    little while the next run goes on is a ring's, which is as full as it gets."""
    runs: Sequence[Run] = site.get("runs", ())
    kept = [run for run in runs if run["kept"] and run["kept"] == run["made"]]
    if len(kept) < ENOUGH or 2 * len(kept) < len(runs) or any(run["drops"] > 1 for run in kept):
        return []
    return kept if sum(run["kept"] for run in kept) >= HITS_ENOUGH else []


def used(site: Mapping[str, Any]) -> bool:
    """Whether a backward pass after the loop needs what each run holds, and frees it."""
    kept = [run for run in site.get("runs", ()) if run["kept"]]
    return bool(kept) and all(run.get("used") for run in kept[:-1] or kept) and 2 * kept[0]["left"] < kept[0]["kept"]


def release(site: Mapping[str, Any], shown: Mapping[str, str], *, sized: bool = True) -> str | None:
    """When what a run kept is freed, and how much that is (``sized``: of tensors), as a clause; None where it was not
    seen to be."""
    gone = [run for run in site.get("runs", ()) if run["kept"] == run["made"] and 2 * run["left"] < run["kept"]]
    if not gone:
        return None
    run = gone[0]
    freed = run["freed"]
    if freed is None:
        when = "when the loop has ended"
    elif freed["returned"]:
        when = f"when `{run['function']}` returns"
    else:
        when = f"when the loop has ended, at {shown.get(freed['path'], freed['path'])}:{freed['line']}"
    held, exact = max(peak(one) for one in gone)
    size = f": the harm is its peak of {'' if exact else 'about '}{held:,} B" if held and sized else ""
    return f"all of it is freed {when}{size}"


def peak(run: Run) -> tuple[int, bool]:
    """What a run held at its end, and whether that is exact: hits that were not followed are taken to have kept as much
    as the others on average."""
    each = [sum(alive.values()) for alive in run["alive"][start(run) :]]
    more = run["hits"] - len(each)
    return sum(each) + round(statistics.fmean(each or (0,)) * more), len(set(each)) < 2 or not more


def start(run: Run) -> int:
    """The first hit to be judged: what the very first of a site keeps was there before the site was looked at."""
    return int(run["first"])


def clearest(runs: Sequence[Run]) -> Run:
    """The run with the most evidence."""
    return max(runs, key=lambda run: len(run["alive"]) - start(run))


def emptied(site: Mapping[str, Any], shown: Mapping[str, str]) -> str | None:
    """Where what a place keeps that a library calls is freed while that goes on; None where it is not seen to be."""
    after = site.get("emptied") or {"freed": None}
    freed = after["freed"]
    if freed is None or freed["returned"] or 2 * after["left"] >= after["kept"]:
        return None
    return f"at {shown.get(freed['path'], freed['path'])}:{freed['line']}, in `{freed['function']}`"


def loops_around(site: Mapping[str, Any]) -> Sequence[int]:
    """The loops around a site, outermost first: those of libraries if the program has none."""
    return site["loops"] or site.get("clocks") or ()
