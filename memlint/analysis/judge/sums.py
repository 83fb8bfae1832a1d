"""Sums over a loop whose graphs are all needed, because one backward runs after the loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memlint.analysis.domain.events import Loop
from memlint.analysis.domain.summary.effects import Store
from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.judge.candidate import Candidate
from memlint.analysis.judge.described import value_of
from memlint.analysis.judge.reasons import first
from memlint.analysis.judge.retention import BEGUN_BEHIND, DROPPED, ONE_BATCH

if TYPE_CHECKING:
    from memlint.analysis.facts.analyser import Analyser


def loop_of_sum(analyser: Analyser, summary: Summary, store: Store) -> Loop | None:
    """The loop over which a store sums or collects numbers whose graphs a later backward needs, possibly within one
    batch. None if the store does not."""
    if store.kind == "cat" or store.loop is None or not (store.how == "add" or store.kind == "retain"):
        return None
    one = Candidate(analyser, summary, store)
    reason = first(DROPPED, one)
    if reason is ONE_BATCH:  # a sum of the losses of one batch's parts
        value = value_of(analyser, summary, store, one.incoming)
        return store.loop.loop if store.how == "add" and _has_graph(value.attached) and value.freed == "no" else None
    if reason not in (None, BEGUN_BEHIND):
        return None
    return one.loop if _has_graph(one.value.attached) and one.is_needed else None


def _has_graph(attached: str) -> bool:
    return attached in ("yes", "some")
