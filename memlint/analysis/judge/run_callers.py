"""Model runs in helpers: which are reported at a caller, and which in the helper itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memlint.analysis.domain.periods import runs_once
from memlint.analysis.domain.state import AMBIENT
from memlint.analysis.domain.summary.effects import ModelRun
from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.domain.values import Source, Sources
from memlint.analysis.index.program import Function
from memlint.analysis.index.roles_by_name import is_evaluation_name
from memlint.analysis.judge.judged_runs import consumed_as, judge_run, loop_of, runs_in_callers_mode

if TYPE_CHECKING:
    from memlint.analysis.facts.analyser import Analyser


def reported_inside(analyser: Analyser, run: ModelRun) -> bool:
    """Whether the function that holds the model call reports it itself, so that the caller reports nothing."""
    if run.origin is None:
        return False
    # a caller that runs the model in eval mode, in a loop, is stronger evidence than a guess in the callee
    surely = run.loop is not None and run.mode is not None
    summary, inner = run.origin
    while not runs_in_callers_mode(analyser, summary):
        unspecialised = analyser.summary(summary.function) if summary.flags else summary
        if unspecialised is not None and _reports(analyser, unspecialised, surely):
            return True
        if inner.origin is None:
            break
        summary, inner = inner.origin
    return False


def in_loop_of_callee(analyser: Analyser, run: ModelRun) -> tuple[Summary | None, ModelRun]:
    """The callee whose own loop runs the model, and the run there. The run itself where there is no such loop, or where
    the callee can report the run: it cannot if some of its callers guard it."""
    inner, below = run, None
    while inner.loop is None and inner.origin is not None:
        below, inner = inner.origin
    if below is None or inner.loop is None or runs_once(inner.loop) or judge_run(analyser, below, inner) is not None:
        return None, run
    return below, inner


def spent_inside(analyser: Analyser, run: ModelRun) -> bool:
    """Whether the helper that returns its run's output shows itself that nothing needs a gradient."""
    while run.origin is not None:
        summary, run = run.origin
        if runs_in_callers_mode(analyser, summary) or run.key not in summary.runs:
            return False
        verdict = judge_run(analyser, summary, run)
        if verdict is not None and verdict.evaluation == "spent" and not verdict.wanted:
            return True
    return False


def evaluated_inside(analyser: Analyser, summary: Summary) -> Sources:
    """The graphs of models that callees put into eval mode themselves, where they run no other model."""
    found: set[Source] = set()
    for record in summary.calls.values():
        function = analyser.function_at(record.callee)
        callee = analyser.summary(function) if function is not None and function.key != summary.function.key else None
        runs = list(callee.runs.values()) if callee is not None else []
        if callee is None or not runs or not all(_is_evaluated(analyser, callee, run) for run in runs):
            continue
        made = (record.at, *record.callee)
        nodes = summary.graphs.nodes
        found.update(key for key in nodes if isinstance(key, tuple) and key[:3] == made and nodes[key].model)
    return frozenset(found)


def _is_evaluated(analyser: Analyser, summary: Summary, run: ModelRun) -> bool:
    """Whether the function itself puts the model into eval mode and needs no gradient."""
    verdict = judge_run(analyser, summary, run) if run.mode is True else None
    return verdict is not None and verdict.evaluation == "eval" and not verdict.wanted


def _reports(analyser: Analyser, summary: Summary, surely: bool) -> bool:
    """Whether a function reports one of its runs. ``surely``: not on weak evidence (see `_is_weak_evidence`)."""
    if surely not in summary.notes.reports:
        summary.notes.reports[surely] = False  # the answer for a recursive query: functions may call each other
        summary.notes.reports[surely] = any(
            not (surely and _is_weak_evidence(analyser, summary, one))
            and (item := judge_run(analyser, summary, one)) is not None
            and item.evaluation == "eval"
            and not item.wanted
            and not left_to_callers(analyser, summary, one)
            and not reported_inside(analyser, one)
            for one in summary.runs.values()
        )
    return summary.notes.reports[surely]


def _is_weak_evidence(analyser: Analyser, summary: Summary, run: ModelRun) -> bool:
    """Whether the evidence for an evaluation is weak: a single run whose output is returned (see MEM201)."""
    if run.loop is None and run.mode is None and _is_evaluated_by_callers(analyser, summary, run):
        return True
    if consumed_as(summary, run) != "escapes" or loop_of(analyser, summary, run) is not None:
        return False
    return run.mode is None or not is_evaluation_name(summary.function)


def left_to_callers(analyser: Analyser, summary: Summary, run: ModelRun) -> bool:
    """Whether the guard belongs in the callers of a helper, which returns the output of its run.

    Either all callers put the model into eval mode, one of them in a loop; or some caller evaluates in a loop while
    another one shows no eval mode: the helper may be right for the other callers.
    """
    over_data = run.loop is not None and run.loop.loop.over_data  # not a handful of models or views
    if run.mode is not None or over_data or consumed_as(summary, run) == "detached":
        return False
    if _is_evaluated_by_callers(analyser, summary, run):
        return True
    callers = _callers(analyser, summary.function)
    ours = {key: caller.run_index.lifted(summary, run) for key, caller in callers.items()}
    if all(any(lifted.mode is True for lifted in runs) for runs in ours.values()):
        return False
    return any(
        lifted.loop is not None and _evaluates(analyser, callers[key], lifted)
        for key, runs in ours.items()
        for lifted in runs
    )


def _is_evaluated_by_callers(analyser: Analyser, summary: Summary, run: ModelRun) -> bool:
    """Whether all callers of a helper that returns its output put the model into eval mode, at least one of them for a
    loop of its own. The guard is then missing there."""
    if consumed_as(summary, run) == "detached" or runs_in_callers_mode(analyser, summary):
        return False
    calls = analyser.facts.calls_of(summary.function)
    if any(record.grad != AMBIENT and caller.function.node is not None for caller, record in calls):
        return False  # a guard there has no effect here: a thread has a grad mode of its own
    ours = [
        [lifted for lifted in caller.run_index.lifted(summary, run) if _evaluates(analyser, caller, lifted)]
        for caller in _callers(analyser, summary.function).values()
    ]
    return all(ours) and any(lifted.loop is not None for runs in ours for lifted in runs)


def _callers(analyser: Analyser, function: Function) -> dict[tuple[str, str], Summary]:
    """The summaries of all other functions that call this one, by key."""
    calls = analyser.facts.calls_of(function)
    return {caller.function.key: caller for caller, _ in calls if caller.function.key != function.key}


def _evaluates(analyser: Analyser, caller: Summary, lifted: ModelRun) -> bool:
    """Whether a linted function runs a model that it has put into eval mode itself, and no gradients are needed."""
    return caller.module.key in analyser.program.project.reported and _is_evaluated(analyser, caller, lifted)
