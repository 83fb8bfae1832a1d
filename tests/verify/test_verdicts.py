"""From what a site left behind to its verdict."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from memlint.finding import Growth
from memlint.report.verify_text import loop_said
from memlint.verifier.judging.bill import bill
from memlint.verifier.judging.leftover import unattributed
from memlint.verifier.judging.verdicts import Settings, judge
from memlint.verifier.model import Verdict

SETTINGS = Settings(3, 12)
CLAIM = Growth("device-tensor", "per-iteration")
KIB = 1024


def _check(when: str, hits: int, alive: Sequence[int], nodes: Sequence[int] = (), before: Sequence[int] = ()) -> Any:
    return {
        "when": when,
        "hits": hits,
        "alive": [{"cpu": count} if count else {} for count in alive],
        "before": [{"cpu": count} if count else {} for count in before or alive],
        "nodes": list(nodes or [0] * len(alive)),
        "own": list(alive),
    }


def _site(*checks: Any, hits: int = 27, **more: Any) -> dict[str, Any]:
    count = len(checks[0]["alive"]) if checks else 0
    return {
        "id": 1,
        "hits": hits,
        "loops": [2],
        "iterations": [[7, number + 1] for number in range(count)],
        "checks": list(checks),
        **more,
    }


def _loop(number: int = 2, **more: Any) -> dict[str, Any]:
    return {"id": number, "readings": [], "survivors": None, "inner": True, "outer": [], **more}


def _run(**more: Any) -> dict[str, Any]:
    basic: dict[str, Any] = {
        "end": {"kind": "finished"},
        "missing": [],
        "torch": "2.13.0",
        "unmeasurable": None,
        "meter": "cpu",
        "free": {"cpu": 1_000_000},
    }
    return {**basic, **more}


def test_a_program_that_was_killed_had_no_time_to_look() -> None:
    settings = Settings(3, 12, " before the program was killed")
    for hits in (2, 15, 20):
        site = _site(hits=hits, iterations=[[7, number + 1] for number in range(min(hits, 15))])
        verdict = judge(CLAIM, site, {2: _loop()}, _run(end={"kind": "running"}), settings)
        assert verdict.verdict == "too-few-iterations"
        assert "before the program was killed" in verdict.reason


def _judge(site: dict[str, Any], claim: Growth = CLAIM, **run: Any) -> Any:
    return judge(claim, site, {2: _loop()}, _run(**run), SETTINGS)


ALL, NONE = [KIB] * 15, [0] * 15
FIRST = [KIB] * 8 + [0] * 7
LAST = [0] * 11 + [KIB] * 4


@pytest.mark.parametrize(
    ("checks", "verdict"),
    [
        ([_check("window", 15, ALL)], "confirmed"),
        ([_check("window", 15, ALL), _check("window", 27, ALL)], "confirmed"),
        ([_check("window", 15, ALL), _check("window", 27, NONE)], "bounded"),
        ([_check("window", 15, ALL), _check("exit", 20, NONE)], "bounded"),
        ([_check("window", 15, ALL), _check("end", 20, NONE)], "confirmed"),
        ([_check("window", 15, FIRST)], "bounded"),
        ([_check("window", 15, LAST)], "bounded"),
        ([_check("window", 15, NONE)], "refuted"),
        ([_check("window", 15, NONE, before=ALL)], "cycle"),
        ([_check("window", 15, NONE), _check("exit", 15, ALL)], "bounded"),
        ([_check("window", 15, NONE), _check("exit", 10, ALL[:10])], "bounded"),
        ([_check("window", 15, NONE), _check("exit", 15, NONE, nodes=[5] * 15)], "bounded"),
        ([_check("window", 15, NONE), _check("exit", 5, ALL[:5])], "refuted"),
        ([_check("window", 15, NONE), _check("exit", 15, LAST)], "refuted"),
        ([_check("window", 15, NONE, nodes=[5] * 15)], "confirmed-host"),
        ([_check("window", 15, [4] * 15, nodes=[5] * 15)], "confirmed-host"),
        ([_check("window", 15, [4] * 15)], "confirmed"),
        ([_check("window", 15, NONE, nodes=[5] * 15), _check("window", 27, NONE)], "bounded"),
        ([_check("window", 15, NONE, nodes=[0] * 10 + [5] * 5)], "bounded"),
        ([_check("window", 15, [0] * 14 + [KIB])], "refuted"),
    ],
)
def test_generations_that_live_decide(checks: list[Any], verdict: str) -> None:
    assert _judge(_site(*checks)).verdict == verdict


@pytest.mark.parametrize(
    ("checks", "hits", "verdict"),
    [
        ([_check("end", 6, [KIB] * 6)], 6, "confirmed"),
        ([_check("end", 6, [0] * 6)], 6, "too-few-iterations"),
        ([_check("end", 3, [KIB] * 3)], 3, "too-few-iterations"),
        ([_check("end", 1, [KIB])], 1, "too-few-iterations"),
        ([_check("end", 10, [0] * 5 + [KIB] * 5)], 10, "too-few-iterations"),
        ([_check("end", 10, [0] * 2 + [KIB] * 8)], 10, "too-few-iterations"),
        ([_check("end", 10, [0] + [KIB] * 9)], 10, "confirmed"),
        ([_check("exit", 10, [KIB] * 10), _check("end", 10, [0] * 10)], 10, "confirmed"),
    ],
)
def test_few_hits_confirm_and_never_refute(checks: list[Any], hits: int, verdict: str) -> None:
    assert _judge(_site(*checks, hits=hits)).verdict == verdict


@pytest.mark.parametrize(
    ("run", "site", "verdict", "reason"),
    [
        ({"end": {"kind": "broken"}}, {}, "unmeasurable", "a mistake of memlint"),
        ({"missing": [1]}, {}, "unmeasurable", "cannot read this file"),
        ({"torch": None}, {}, "unmeasurable", "never imported torch"),
        ({"unmeasurable": "no counters"}, {}, "unmeasurable", "no counters"),
        ({}, {"hits": 0}, "not-reached", "never run"),
        ({"compiled": True}, {"hits": 0}, "unmeasurable", "torch.compile"),
        ({"processes": True}, {"hits": 0}, "not-reached", "main process (it has others)"),
        ({}, {"cut": True}, "unmeasurable", "too large"),
    ],
)
def test_what_was_not_measured_is_not_judged(run: Any, site: Any, verdict: str, reason: str) -> None:
    found = _judge({**_site(_check("window", 15, NONE)), **site}, **run)
    assert found.verdict == verdict
    assert reason in found.reason


@pytest.mark.parametrize("kind", ["peak", "time"])
def test_peaks_and_time_need_a_comparison(kind: Any) -> None:
    found = _judge(_site(_check("window", 15, ALL)), Growth("device-tensor", kind))
    assert (found.verdict, found.reason) == ("unmeasurable", "needs --compare-fix")


def test_bytes_are_those_of_an_iteration() -> None:
    exact = _judge(_site(_check("window", 15, ALL))).bytes_per_iteration
    assert (exact.min, exact.max, exact.exact, exact.mean) == (KIB, KIB, KIB, KIB)
    spread = _judge(_site(_check("window", 15, [KIB, 2 * KIB, 3 * KIB] * 5))).bytes_per_iteration
    assert (spread.min, spread.max, spread.exact) == (KIB, 3 * KIB, None)


def test_what_counts_for_another_finding_as_well_is_said() -> None:
    check = {**_check("window", 15, [3 * KIB] * 15), "own": ALL, "shared_with": [[]] * 3 + [[5]] * 11 + [[4, 5]]}
    settings = Settings(3, 12, places={4: "MEM101 at a.py:2", 5: "MEM102 at a.py:3", 1: "MEM101 at a.py:7"})
    found = judge(CLAIM, _site(check), {2: _loop()}, _run(), settings)
    assert found.bytes_per_iteration is not None
    assert found.bytes_per_iteration.exact == 3 * KIB
    assert "3,072 B of tensors on cpu, 2,048 B of which count for MEM102 at a.py:3 as well" in found.reason


def test_several_hits_in_an_iteration_are_added() -> None:
    site = _site(_check("window", 15, ALL))
    site["iterations"] = [[7, 1 + number // 3] for number in range(15)]
    assert _judge(site).bytes_per_iteration.max == 3 * KIB


def test_iterations_that_missed_the_place_count_as_nothing_and_the_mean_projects() -> None:
    site = _site(_check("window", 15, ALL))
    site["iterations"] = [[7, 1 + 50 * number] for number in range(15)]
    found = _judge(site)
    assert (found.bytes_per_iteration.min, found.bytes_per_iteration.max) == (0, KIB)
    assert found.bytes_per_iteration.mean in range(KIB // 50, KIB // 40)
    assert found.iterations_until_full == 1_000_000 // found.bytes_per_iteration.mean


def _late(count: int, every: int, nbytes: int = KIB) -> list[dict[str, Any]]:
    return [
        {"hit": 51 + every * number, "alive": {"cpu": nbytes} if nbytes else {}, "nodes": 2, "walked": True}
        for number in range(count)
    ]


def test_what_stays_now_and_then_is_confirmed_by_its_own_hits() -> None:
    found = _judge(_site(_check("window", 15, NONE), hits=1000, late=_late(8, 50)))
    assert found.verdict == "confirmed"
    assert (found.bytes_per_iteration.min, found.bytes_per_iteration.max) == (0, KIB)
    assert found.bytes_per_iteration.mean == KIB * 7 // 350
    assert _judge(_site(_check("window", 15, NONE), hits=1000, late=_late(8, 50, 0))).verdict == "confirmed-host"


def test_a_late_hit_or_two_that_stay_neither_confirm_nor_refute() -> None:
    found = _judge(_site(_check("window", 15, NONE), hits=1000, late=_late(2, 50)))
    assert found.verdict == "too-few-iterations"
    assert "of 1000 hits 2 left something that stays" in found.reason


def test_a_claim_of_epochs_is_judged_across_epochs_only() -> None:
    claim = Growth("device-tensor", "per-epoch")
    site = {**_site(_check("window", 15, ALL)), "loops": [3, 2]}
    loops = {2: _loop(), 3: _loop(3)}
    assert judge(claim, site, loops, _run(), SETTINGS).verdict == "too-few-iterations"
    site["iterations"] = [[7 + number // 5, 1 + number % 5] for number in range(15)]
    assert judge(claim, site, loops, _run(), SETTINGS).verdict == "confirmed"


def _in_runs(*runs: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A site whose window is over in its fourth run of five hits, when nothing of earlier ones is left."""
    rows = [
        {
            **_check("run", 5, [KIB] * 5),
            "run": 7 + number,
            "first": not number,
            "function": "evaluate",
            "iterations": [[7 + number, 1 + each] for each in range(5)],
            "made": 4,
            "kept": 4,
            "left": 0,
            "drops": 1,
            "freed": {"path": "/p.py", "line": 3, "function": "main", "returned": True},
            **run,
        }
        for number, run in enumerate(runs)
    ]
    return {**_site(_check("window", 15, [0] * 14 + [KIB])), "runs": rows, **more}


@pytest.mark.parametrize(
    ("runs", "verdict"),
    [
        (({}, {}), "confirmed"),
        (({},), "refuted"),
        (({}, {"made": 3, "kept": 3, "hits": 4}), "confirmed"),  # of other lengths
        (({}, {"kept": 3}), "refuted"),  # not all stays
        (({}, {}, {"kept": 0}), "confirmed"),
        (({}, {"kept": 0}, {"kept": 0}, {"kept": 0}), "refuted"),  # a cache that has filled
        (({"drops": 3}, {}), "refuted"),  # a ring: it goes one by one
        (({"used": True}, {"used": True}), "bounded"),  # the steps of an episode
        (({"used": True}, {}), "bounded"),  # the last has yet to be used
        (({"used": True, "left": 4}, {"used": True, "left": 4}), "confirmed"),  # used, and kept on
        (({"made": 1, "kept": 1}, {"made": 1, "kept": 1}), "refuted"),  # runs of two hits are too few here
        (({"alive": [{}] * 5, "nodes": [3] * 5}, {"alive": [{}] * 5, "nodes": [3] * 5}), "confirmed-host"),
    ],
)
def test_what_stays_to_the_end_of_each_run_is_confirmed(runs: Any, verdict: str) -> None:
    assert _judge(_in_runs(*runs)).verdict == verdict


def test_it_is_said_when_a_run_gives_back_what_it_kept_and_how_much() -> None:
    found = judge(CLAIM, _in_runs({}, {}), {2: _loop()}, _run(), Settings(3, 12, shown={"/p.py": "p.py"}))
    assert "1,024 B of tensors on cpu, until the loop ends (in each of 2 runs of 5 hits)" in found.reason
    assert "freed when `evaluate` returns: the harm is its peak of 5,120 B" in found.reason
    assert (found.held_bytes, found.iterations_until_full) == (5 * KIB, None)
    here = {"freed": {"path": "/p.py", "line": 3, "function": "<module>", "returned": False}}
    found = judge(CLAIM, _in_runs(here, here), {2: _loop()}, _run(), Settings(3, 12, shown={"/p.py": "p.py"}))
    assert "freed when the loop has ended, at p.py:3" in found.reason
    assert "freed" not in _judge(_in_runs({"left": 4}, {"left": 4})).reason


@pytest.mark.parametrize(
    ("left", "returned", "verdict"),
    [(0, False, "bounded"), (0, True, "confirmed"), (9, False, "confirmed"), (9, True, "confirmed")],
)
def test_what_a_library_calls_is_bounded_where_it_is_emptied_meanwhile(left: int, returned: bool, verdict: str) -> None:
    freed = {"path": "/p.py", "line": 9, "function": "on_epoch_end", "returned": returned}
    after = {"kept": 11, "left": left, "drops": 1, "freed": freed}
    found = _judge(_site(_check("window", 15, ALL), _check("window", 27, ALL), loops=[], emptied=after))
    assert found.verdict == verdict
    assert ("in `on_epoch_end`" in found.reason) == (verdict == "bounded")


def _frames(line: int) -> list[dict[str, Any]]:
    return [{"path": "/p.py", "line": line, "function": "f"}]


def _grown(sites: Sequence[int], row: Sequence[int], line: int = 5) -> dict[str, Any]:
    return {
        "groups": [{"sites": list(sites), "bytes": list(row)}],
        "stacks": [{"sites": list(sites), "bytes": list(row), "frames": _frames(line)}],
        "latest": [],
    }


def _left(survivors: Any, verdict: Any, readings: Sequence[int] = (0,) * 13, **loop: Any) -> list[Any]:
    watched = _loop(readings=[{"requested": {"cpu": held}} for held in readings], survivors=survivors, **loop)
    run = {"loops": [watched], "sites": [], "located": None}
    return unattributed(run, {1: verdict}, {2: "p.py:4"}, {"/p.py": "p.py"})


def test_growth_that_a_confirmed_site_follows_is_explained_and_other_growth_is_not() -> None:
    confirmed = _judge(_site(_check("window", 15, ALL)))
    refuted = _judge(_site(_check("window", 15, NONE)))
    grown = [KIB] * 12
    assert _left(_grown([1], grown), confirmed) == []
    (row,) = _left(_grown([], grown), confirmed)
    assert (row.bytes_per_iteration, row.loop, row.stacks[0].frames[0].line) == (KIB, "p.py:4", 5)
    assert len(_left(_grown([1], grown), refuted)) == 1
    bounded = _judge(_site(_check("window", 15, FIRST)))
    assert _left(_grown([1], grown), bounded) == []
    assert _left(_grown([], [100] * 12), refuted) == []
    assert _left(_grown([], [KIB] * 3 + [0] * 9), refuted) == []


def test_one_tensor_that_grows_is_growth_too() -> None:
    refuted = _judge(_site(_check("window", 15, NONE)))
    survivors = {"groups": [], "stacks": [], "latest": [{"bytes": 9 * KIB, "frames": _frames(6)}]}
    (row,) = _left(survivors, refuted, [KIB * step for step in range(25)])
    assert (row.bytes_per_iteration, row.stacks[0].frames[0].line) == (KIB, 6)


@pytest.mark.parametrize(
    ("verdict", "said"),
    [
        ("confirmed", "grows"),
        ("confirmed-host", "grows"),
        ("cycle", "grows"),
        ("peak-only", "flat"),
        ("refuted", "flat"),
        ("inconclusive", "flat"),
    ],
)
def test_a_loop_that_leaves_nothing_grows_only_by_findings_that_keep_something(verdict: Any, said: str) -> None:
    flat = {**_loop(1, readings=[{"requested": {"cpu": KIB}, "host": 0}] * 13), "tops": 40, "runs": 1, "longest": 40}
    run = {"loops": [flat], "sites": [{"id": 9, "loops": [1]}], "located": None}
    (found,) = bill(run, {1: "p.py:1"}, 3, 12, {9: Verdict(verdict=verdict, reason="")})
    assert loop_said(found)[0] == said


def test_each_loop_gets_a_line_that_says_how_far_it_was_seen() -> None:
    flat = [{"requested": {"cpu": 9 * KIB}, "host": 100} for _ in range(13)]
    rising = [{"requested": {"cuda:0": 9 * KIB + KIB * step}, "host": 100 + 3000 * step} for step in range(25)]
    counted = {"tops": 40, "runs": 2, "longest": 20, "survivors": None}
    loops = [
        {**_loop(1, readings=flat), **counted},
        {**_loop(2, readings=rising), **counted},
        {**_loop(3), **counted, "tops": 0, "runs": 0, "longest": 0},
        {**_loop(4), **counted, "longest": 5},
        {**_loop(5), **counted},
        {**_loop(6), **counted, "longest": 5},
        {**_loop(7, readings=rising), **counted, "settled": {"cuda:0": 9 * KIB}, "host_settled": 100},
    ]
    run = {"loops": loops, "sites": [{"id": 9, "loops": [6], "runs": [{"loop": 6}]}], "located": None}
    found = bill(run, {number: f"p.py:{10 * number}" for number in range(1, 8)}, 3, 12, {})
    assert [one.place for one in found] == [f"p.py:{10 * number}" for number in range(1, 8)]
    assert (found[0].bytes_per_iteration, found[0].host_bytes_per_iteration) == ({"cpu": 0}, 0)
    assert (found[1].bytes_per_iteration, found[1].host_bytes_per_iteration) == ({"cuda:0": KIB}, 3000)
    assert [one.until_its_end for one in found] == [{}] * 6 + [{"cuda:0": KIB, "host": 3000}]
    said = ["", "", "never run", "too short", "--full", "judged by what the findings in it keep", ""]
    assert all(each in one.reason for each, one in zip(said, found, strict=True))
    assert [bool(one.reason) for one in found] == [False, False, True, True, True, True, False]
