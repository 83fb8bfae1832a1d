"""The events of one function, made from its summary, for the rules."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

from memlint.analysis.demand.unneeded_runs import may_freeze
from memlint.analysis.domain.events import Carry, Event, How, Loop, Place, Retain, Step
from memlint.analysis.domain.summary.effects import ModelRun, Store
from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.domain.values import Source, Sources
from memlint.analysis.index.roles_by_name import is_test
from memlint.analysis.judge import growing_tensors
from memlint.analysis.judge.bounded_places import emptied_by, may_be_bounded
from memlint.analysis.judge.candidate import Candidate
from memlint.analysis.judge.carried_state import carried_on, state_of
from memlint.analysis.judge.confidence import confidence_unneeded
from memlint.analysis.judge.described import lacks_guard, value_of
from memlint.analysis.judge.evaluation import Keeper, evaluations, is_small, model_calls
from memlint.analysis.judge.judged_runs import Verdict
from memlint.analysis.judge.reasons import first
from memlint.analysis.judge.retention import (
    BEGUN_BEHIND,
    BOUNDED,
    DOUBTED,
    DOUBTED_TENSOR,
    DROPPED,
    FEW_ROUNDS_OF_A_TEST,
    MAY_BE_NEEDED,
    ONE_BATCH,
)
from memlint.analysis.judge.run_callers import in_loop_of_callee
from memlint.analysis.transfer.held_values import tensors_within
from memlint.analysis.transfer.modules import inert_guards
from memlint.finding import Confidence, weakest

if TYPE_CHECKING:
    from memlint.analysis.domain.fix_places import FixPlaces
    from memlint.analysis.facts.analyser import Analyser


#: how many callers up stored graphs are followed
_LEVELS = 3
#: the most callers, over all levels, that are examined for one function
_MAX_CALLERS = 24

#: the rule that reports a place with a growing graph, by how the place grows
_CODES = {"add": "MEM101", "cat": "MEM302"}


def judge(analyser: Analyser, summary: Summary, fixes: FixPlaces) -> Iterator[Event]:
    """The events of one function that several rules read or that depend on each other, with the places of their
    fixes."""
    if summary.exit is None and not summary.stores and not summary.runs:
        return
    verdicts = evaluations(analyser, summary)
    kept: dict[Source, Keeper] = {}
    events: list[Event] = []
    for store in summary.stores.values():
        for event in _judged(analyser, summary, store, fixes):
            events.append(event)
            if _keeps(event):
                for source in summary.graphs.closure(store.entering.src):
                    _note(kept, source, _keeper(analyser, summary, event))
    for source, keeper in _kept_by_callers(analyser, summary, [verdict.run for verdict in verdicts], fixes):
        _note(kept, source, keeper)
    for verdict in verdicts:
        for keeper in (*_kept_by_callee(analyser, verdict), *_grown_by_callees(analyser, verdict.run, fixes)):
            _note(kept, verdict.run.node, keeper)
    calls = list(model_calls(analyser, summary, verdicts, kept))
    small = functools.partial(is_small, analyser, summary)
    frozen = functools.partial(may_freeze, summary)
    yield from fixes.with_places(analyser, summary, inert_guards.guards(analyser, summary, calls, small, frozen))
    yield from events


def _note(kept: dict[Source, Keeper], source: Source, keeper: Keeper) -> None:
    known = kept.get(source)
    if known is None or (keeper.rounds.over_data and not known.rounds.over_data):
        kept[source] = keeper


def _kept_by_callers(
    analyser: Analyser, summary: Summary, runs: list[ModelRun], fixes: FixPlaces
) -> Iterator[tuple[Source, Keeper]]:
    """Graphs of runs that leave the function with each call (stored, returned or yielded), each with a place that keeps
    them in a loop of a caller."""
    leaving = {run.node for run in runs} & _leaving(summary) if runs else set()
    if leaving:
        for keeper in _keepers(analyser, summary, fixes):
            yield from ((source, keeper) for source in leaving)


def _kept_by_callee(analyser: Analyser, verdict: Verdict) -> Iterator[Keeper]:
    """The places of a callee that keep the graphs of an evaluation with the iterations of the callee's own loop.

    The callee cannot know whether anybody needs the graphs; the caller, which evaluates, does not.
    """
    below, inner = in_loop_of_callee(analyser, verdict.run)
    if below is None or verdict.evaluation != "eval" or verdict.wanted:
        return
    for store in below.stores.values():
        value = store.entering
        if store.kind == "cat" or store.loop is None or inner.node not in below.graphs.closure(value.src):
            continue
        one = Candidate(analyser, below, store)
        if first(DROPPED, one) or first(DOUBTED, one) or may_be_bounded(analyser, below, store, one.value):
            continue
        if one.loop is not None and not store.cleared and one.value.attached == "yes":
            yield Keeper(
                store.place_text, one.loop, "medium", Step(store.site, f"`{store.place_text}` keeps this graph")
            )


def _grown_by_callees(analyser: Analyser, run: ModelRun, fixes: FixPlaces) -> Iterator[Keeper]:
    """The tensors of callees that grow, with each of their calls, by the graph of a run. Other places that callees fill
    are lifted to their callers."""
    while run.origin is not None:
        below, run = run.origin
        for store in below.stores.values():
            if store.kind == "cat" and run.node in below.graphs.closure(store.entering.src):
                grown = growing_tensors.judged(analyser, below, store, fixes)
                yield from (_keeper(analyser, below, event) for event in grown if _keeps(event))


def _keepers(analyser: Analyser, summary: Summary, fixes: FixPlaces) -> Iterator[Keeper]:
    """The places that keep what the calls of a function leave behind, in loops of its callers and of their callers:
    breadth-first over the call graph, each caller once."""
    seen, near = {summary.function.key}, [summary]
    for _ in range(_LEVELS + 1):
        above: list[Summary] = []
        for callee in near:
            for caller, ours in _callers_given(analyser, callee):
                if caller.function.key in seen or len(seen) > _MAX_CALLERS:
                    continue
                seen.add(caller.function.key)
                yield from _kept_in_loops(analyser, caller, ours, fixes)
                if not ours.isdisjoint(_leaving(caller)):
                    above.append(caller)
        near = above


def _callers_given(analyser: Analyser, callee: Summary) -> Iterator[tuple[Summary, Sources]]:
    """The callers of a function, each with the graphs that its calls of the function leave it."""
    calls: dict[tuple[str, str], tuple[Summary, set[Source]]] = {}
    for caller, record in analyser.facts.calls_of(callee.function):
        made = (record.at, callee.module.key, callee.function.qual)
        calls.setdefault(caller.function.key, (caller, set()))[1].add(made)
    for caller, made_by in calls.values():
        ours = frozenset(node for node in caller.graphs.nodes if isinstance(node, tuple) and node[:3] in made_by)
        if ours:
            yield caller, ours


def _kept_in_loops(analyser: Analyser, caller: Summary, ours: Sources, fixes: FixPlaces) -> Iterator[Keeper]:
    """The places that keep some graphs of a function with the iterations of its loops."""
    evaluations(analyser, caller)  # its result decides which stores keep a graph for no backward
    for store in list(caller.stores.values()):
        if store.loop is None or caller.graphs.closure(store.entering.src).isdisjoint(ours):
            continue
        yield from (
            _keeper(analyser, caller, event) for event in _judged(analyser, caller, store, fixes) if _keeps(event)
        )


def _leaving(summary: Summary) -> Sources:
    """The graphs that outlive a call of the function: in what it returns, yields or stores."""
    stored = [store.entering.src for store in summary.stores.values() if not store.local]
    held = [value.src for value in summary.exit.sym.values()] if summary.exit is not None else []
    yielded = [tensors_within(summary, state, value).src for value, state in summary.yields]
    return summary.graphs.closure(summary.notes.returned.union(*stored, *held, *yielded))


def _keeps(event: Retain | Carry) -> bool:
    """Whether a rule reports, with at least medium confidence, that the place keeps the graph."""
    shown = "low" not in (event.certainty, event.value.certainty)
    return shown and not event.needed and event.value.attached in ("yes", "some")


def _keeper(analyser: Analyser, summary: Summary, event: Retain | Carry) -> Keeper:
    """The place that keeps a graph, with a trace step that names the rule if that rule reports there."""
    code = "MEM102" if isinstance(event, Retain) else _CODES.get(event.how, "MEM103")
    note = f" ({code} reports the same memory)" if summary.module.key in analyser.program.project.reported else ""
    step = Step(event.site, f"`{event.place.text}` keeps this graph{note}")
    return Keeper(event.place.text, event.loop, _graph_unneeded(event), step)


def _graph_unneeded(event: Retain | Carry) -> Confidence:
    """The confidence that nothing needs the kept graph: no backward has freed it, and none follows."""
    if event.value.freed != "no" or event.value.attached != "yes" or not event.loop.over_data or event.reset:
        return "low"
    return weakest(event.certainty, event.value.certainty)


def _judged(analyser: Analyser, summary: Summary, store: Store, fixes: FixPlaces) -> Iterator[Retain | Carry]:
    """The event of one store; none if something bounds it."""
    if store.kind == "cat":
        yield from growing_tensors.judged(analyser, summary, store, fixes)
    else:
        yield from _judge_store(analyser, summary, store, fixes)


def _judge_store(analyser: Analyser, summary: Summary, store: Store, fixes: FixPlaces) -> Iterator[Retain | Carry]:
    one = Candidate(analyser, summary, store)
    reason = first(DROPPED, one)
    if reason is not None:
        one.report("dropped", reason)
        return
    loop, value = one.loop, one.value
    assert loop is not None
    place = Place(store.place_kind, store.place_text)
    needed = one.is_needed
    certainty, seen = _certainty(one)
    retained_run = lacks_guard(summary, one.incoming)
    shown = not needed and "low" not in (certainty, value.certainty)
    cut = fixes.cut_of(analyser, summary, store) if shown else None
    if store.kind == "retain":
        yield Retain(
            site=store.site,
            function=summary.function.qual,
            certainty=certainty,
            trace=store.trace,
            value=value,
            place=place,
            loop=loop,
            how=store.how,
            needed=needed,
            reset=store.cleared,
            emptied=emptied_by(analyser, summary, store),
            in_model_loop=retained_run,
            cut=cut,
        )
        return
    yield Carry(
        site=store.site,
        function=summary.function.qual,
        certainty=certainty,
        trace=store.trace if seen is None else (*store.trace, seen),
        value=value,
        place=place,
        loop=loop,
        how=cast(How, store.how),
        needed=needed,
        reset=store.cleared,
        emptied=emptied_by(analyser, summary, store),
        in_model_loop=retained_run or seen is not None,
        cut=cut,
    )


def _certainty(one: Candidate) -> tuple[Confidence, Step | None]:
    """The confidence that a store retains memory that nothing needs, and a trace step to the evaluation that carries
    the state on, if there is one."""
    analyser, summary, store, value = one.analyser, one.summary, one.store, one.value
    has_graph = value.attached in ("yes", "some")
    certainty: Confidence = "medium" if store.guessed or store.place_kind == "foreign" else "high"
    if has_graph:
        certainty = weakest(
            certainty, "medium" if one.is_alone else confidence_unneeded(analyser, summary, store, value)
        )
        if certainty == "low":
            one.report("low", MAY_BE_NEEDED)
    one.certainty = certainty
    doubt = first(DOUBTED if has_graph else DOUBTED_TENSOR, one)
    if doubt is not None:
        one.report("low", doubt)
        certainty = "low"
    # a module's state that an evaluation carries on is a finding, even if training code resets it
    name = state_of(summary, store) if certainty != "low" and has_graph else ""
    seen = carried_on(analyser, summary, name) if name else None
    if certainty != "low" and seen is None and not one.is_alone and may_be_bounded(analyser, summary, store, value):
        one.report("low", BOUNDED)
        certainty = "low"
    few = store.loop is None or store.loop.loop.over not in ("loader", "epochs")
    if few and is_test(summary.function, by_name=summary.hook is None):
        one.report("low", FEW_ROUNDS_OF_A_TEST)  # a framework's ``test_step`` is no test
        certainty = "low"
    return certainty, seen


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
