"""Merging of several processes of one program: the worst verdict counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from memlint.finding import Finding
from memlint.verifier.model import WORST, Rank, Run, Verdict


def merged(
    findings: Mapping[int, Finding],
    verdicts: Sequence[Mapping[int, Verdict]],
    measured: Sequence[Mapping[str, Any]],
    run: Run,
) -> tuple[list[tuple[Finding, Verdict]], list[Rank]]:
    """Each finding with its verdict, and the ranks with what differs. ``verdicts``: by site, one mapping a rank."""
    found: list[tuple[Finding, Verdict]] = []
    differing: list[dict[str, Any]] = [{} for _ in verdicts]
    for site, finding in findings.items():
        each = [by_site.get(site, _silent(run)) for by_site in verdicts] or [_silent(run)]
        worst = min(each, key=lambda verdict: WORST.index(verdict.verdict))
        found.append((finding, worst))
        for rank, verdict in enumerate(each[: len(differing)]):
            if verdict.verdict != worst.verdict:
                differing[rank][finding.fingerprint] = verdict.verdict
    if len(measured) < 2:
        return found, []
    ranks = [
        Rank(
            one["rank"],
            str(one["end"]["kind"]),
            steps(one),
            differing[number],
        )
        for number, one in enumerate(measured)
    ]
    return found, ranks


def steps(measured: Mapping[str, Any]) -> int:
    """The iterations of the loop that ran most in one process."""
    return max((int(loop["tops"]) for loop in measured["loops"]), default=0)


def _silent(run: Run) -> Verdict:
    """The verdict if a process wrote nothing."""
    if run.end in ("failed", "killed", "timeout", "interrupted"):
        return Verdict(verdict="not-reached", reason="the program ended before anything was measured")
    return Verdict(verdict="unmeasurable", reason="the program's process left no measurements")
