"""Evaluations without a guard: model calls that autograd records although nothing needs the gradients."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from memlint.analysis.demand.gradient_demand import (
    ASKED,
    ENABLED,
    ITSELF,
    REACHED,
    REQUIRES,
    asked_for,
    differentiates_itself,
    reason_gradients_needed,
)
from memlint.analysis.demand.optimizer_ownership import owner_of
from memlint.analysis.demand.unneeded_runs import records_unneeded_graph, teaches
from memlint.analysis.demand.used_up_graphs import is_dropped, is_script_loop, is_trial, loads_weights, trains_otherwise
from memlint.analysis.domain.events import Fact, Loop, ModelCall, Step
from memlint.analysis.domain.summary.effects import ModelRun, excluded
from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.domain.values import CPU, EMPTY, Source
from memlint.analysis.index.roles_by_name import is_evaluation_name
from memlint.analysis.judge import run_callers
from memlint.analysis.judge.judged_runs import (
    Verdict,
    consumed_as,
    consumed_finally,
    judge_run,
    loop_of,
    records,
    runs_in_callers_mode,
)
from memlint.analysis.judge.reasons import report_run_reason
from memlint.analysis.judge.roles import Phase
from memlint.analysis.judge.run_doubts import (
    collects_scores,
    doubt_of,
    is_beside_training,
    is_only_passed_on,
    is_tried,
    made_here,
    tries,
)
from memlint.analysis.judge.sizes.single_samples import (
    gives_one_row,
    runs_on_one_sample,
    runs_on_one_state,
    runs_on_written_numbers,
    shows_a_picture,
)
from memlint.analysis.judge.sizes.small_networks import is_of_rows, runs_a_large_network, size_of_network
from memlint.analysis.syntax.syntax import calls, last_name
from memlint.analysis.transfer.held_values import places_with
from memlint.analysis.transfer.modules.made_leaves import new_leaves, of_new_tensors
from memlint.analysis.transfer.modules.touched_parameters import of_networks
from memlint.finding import Confidence, weakest
from memlint.ir import nodes as ir

if TYPE_CHECKING:
    from memlint.analysis.facts.analyser import Analyser

#: the kinds of evidence for an evaluation, the strongest first
_SUREST = ("eval", "spent", "kept", "name")


class Keeper(NamedTuple):
    """A place that keeps a graph beyond the iteration, and the loop whose iterations make it grow."""

    place: str
    rounds: Loop
    #: the confidence that no backward needs the graph
    unneeded: Confidence = "low"
    #: a trace step to the statement that keeps it
    step: Step | None = None


def evaluations(analyser: Analyser, summary: Summary) -> list[Verdict]:
    """The verdicts on the recorded runs of the function, in source order. Stores in the function's notes which graphs
    exist only because a guard is missing."""
    inner = run_callers.evaluated_inside(analyser, summary) if summary.stores else EMPTY
    summary.notes.evaluations = summary.notes.unguarded = inner
    if not summary.runs:
        return []
    if runs_in_callers_mode(analyser, summary):
        # the caller decides the mode of a forward, but a cut inside it holds for all callers
        recorded = [run for run in summary.runs.values() if not run.tests and records(analyser, summary, run)]
        for run in summary.runs.values():
            report_run_reason(analyser, summary, run, "dropped", "layer-code")
        return [Verdict(run, "cut", "") for run in recorded if records_unneeded_graph(analyser, summary, run)]
    found: list[Verdict] = []
    inside: list[Verdict] = []
    for run in sorted(summary.runs.values(), key=lambda run: run.site):
        verdict = judge_run(analyser, summary, run)
        if verdict is None:
            continue
        if run_callers.reported_inside(analyser, run):
            inside.append(verdict)
            report_run_reason(analyser, summary, run, "dropped", "reported-inside")
        elif run_callers.left_to_callers(analyser, summary, run):
            report_run_reason(analyser, summary, run, "dropped", "left-to-callers")
        elif verdict.evaluation == "spent" and run_callers.spent_inside(analyser, run):
            report_run_reason(analyser, summary, run, "dropped", "spent-inside")
        else:
            found.append(verdict)
    shown = [*inside, *(item for item in found if item.evaluation == "eval" and item.phase is None)]
    summary.notes.evaluations = inner.union(item.run.node for item in shown if item.wanted in ("", ENABLED, ITSELF))
    summary.notes.unguarded = inner.union(item.run.node for item in shown if item.wanted in ("", ENABLED))
    return found


def model_calls(
    analyser: Analyser, summary: Summary, verdicts: list[Verdict], kept: dict[Source, Keeper]
) -> Iterator[ModelCall]:
    """One event for each evaluation loop (or function) that records: its first model call.

    ``kept``: by graph, the place of this function that keeps it beyond the iteration and is reported.
    """
    groups: dict[Source, list[Verdict]] = {}
    for verdict in verdicts:
        event = _by_itself(analyser, summary, verdict, kept)
        if event is not None:
            yield event
        elif _is_evaluation(analyser, summary, verdict, kept):
            loop = verdict.run.loop
            groups.setdefault(loop.id if loop is not None else ("function",), []).append(verdict)
        elif verdict.evaluation == "cut":
            yield _event(summary, verdict, _loop_around(verdict.run), "medium", "detached")
        elif verdict.evaluation and verdict.wanted:
            report_run_reason(analyser, summary, verdict.run, "dropped", "gradients-wanted", verdict.wanted)
        else:
            report_run_reason(analyser, summary, verdict.run, "dropped", "no-evaluation")
    for name, group in [(name, part) for name, whole in groups.items() for part in _apart(whole)]:
        if name == ("function",):
            group = _on_their_own(group, groups)
        if not group or any(outer in groups for outer in group[0].run.loops if outer != name):
            for item in group:
                report_run_reason(analyser, summary, item.run, "dropped", "same-guard")
            continue
        yield _of_group(analyser, summary, group, kept)


def _loop_around(run: ModelRun) -> Loop | None:
    return run.loop.loop if run.loop is not None else None


def _by_itself(analyser: Analyser, summary: Summary, verdict: Verdict, kept: dict[Source, Keeper]) -> ModelCall | None:
    """The event of a run that needs a guard of its own: nothing trains the model, or its output teaches another model.
    None for other runs."""
    run = verdict.run
    owner = owner_of(analyser, summary, run)
    if owner == "no" and not _may_be_asked(summary) and not differentiates_itself(analyser, summary, run):
        in_loss = any({run.node} & reached for reached, *_ in summary.backwards)
        loop = loop_of(analyser, summary, run)
        shown = loop is None and not in_loss and summary.function.node is None and is_tried(run)
        if shown:
            report_run_reason(analyser, summary, run, "low", "new-model-runs-once")
        return _event(
            summary,
            verdict,
            loop,
            "low" if shown else "high",
            "loss" if in_loss else consumed_as(summary, run),
            keeper=_keeper(summary, [run], kept),
            owner=owner,
        )
    if verdict.evaluation == "eval" and verdict.wanted == REACHED and teaches(analyser, summary, run):
        verdict.evaluation = "beside"
        return _event(summary, verdict, _loop_around(run), "medium", "loss")
    return None


def _of_group(analyser: Analyser, summary: Summary, group: list[Verdict], kept: dict[Source, Keeper]) -> ModelCall:
    """The event of several runs that one guard covers. It names the run with the strongest evidence, or the one whose
    graph is kept."""
    first = min(group, key=lambda item: _SUREST.index(item.evaluation))
    retained = _keeper(summary, [first.run], kept)
    for other in group if retained is None else ():
        # report the call whose graph is kept: the graphs of the others are freed
        if other.evaluation == first.evaluation and (keeper := _keeper(summary, [other.run], kept)):
            first, retained = other, keeper
            break
    run = first.run
    for other in group:
        if other is not first:
            report_run_reason(analyser, summary, other.run, "dropped", "same-guard")
    below, inner = run_callers.in_loop_of_callee(analyser, run)
    loop = loop_of(analyser, summary, run) or (_loop_around(inner) if below is not None else None)
    certainty, doubt = _certainty(analyser, summary, first, loop, retained)
    consumed = consumed_finally(analyser, summary, first)
    doubt = doubt or doubt_of(analyser, summary, first, consumed)
    if doubt:
        report_run_reason(analyser, summary, run, "low", doubt)
        certainty = "low"
    named = first.evaluation == "name"
    kept_in_vain = named and retained is not None and retained.unneeded != "low"
    if kept_in_vain or ((named or summary.answers) and _only_shows(summary, run)):
        consumed = "detached"
    handed_on = named and consumed == "escapes"
    beside = handed_on and (is_beside_training(analyser, summary, run) or collects_scores(summary, run))
    return _event(
        summary, first, loop, certainty, consumed, keeper=retained, phase=first.phase, beside=beside, group=group
    )


def _certainty(
    analyser: Analyser, summary: Summary, first: Verdict, loop: Loop | None, retained: Keeper | None
) -> tuple[Confidence, str]:
    """The confidence that a run is an evaluation that records in vain, and the name of the reason that lowers it; "" if
    there is none."""
    run = first.run
    is_set = run.mode is not None or first.thread is not None
    certainty: Confidence = "high" if is_set and first.evaluation == "eval" else "medium"
    if first.unguarded:
        certainty = "medium"
    script = _is_script(analyser, summary, loop, run)
    if is_trial(summary.function) and not script and (loop is None or first.evaluation == "spent"):
        # code after a training loop is no trial
        in_loop = loop is not None and (loop.over_data or trains_otherwise(summary, run))
        beside = summary.backwards and (first.evaluation == "eval" or (in_loop and summary.function.node is None))
        return ("medium", "") if beside or _applies(analyser, summary, first) else ("low", "trial")
    if loop is None and (run.probes or is_dropped(summary, run)):
        return certainty, "asks-for-shape"
    if loop is None and made_here(run) and (first.evaluation == "spent" or tries(summary.function)):
        return certainty, "new-model-runs-once"
    if first.evaluation == "kept" and retained is not None:
        return weakest(certainty, retained.unneeded), "may-be-trained-by" if retained.unneeded == "low" else ""
    return certainty, ""


def _may_be_asked(summary: Summary) -> bool:
    """Whether the function asks for gradients of something that may be an input of the run under another name, or a
    part of it. Parameters of a network that the function iterates over do not count, nor do new tensors, whose graph
    source any input has that is computed from them. What has a hook for its gradient, or keeps it, has a graph."""
    networks = of_networks(summary.function.body)
    hooks = (call.func for call in calls(summary.function.body) if last_name(call.func) in _GRADIENT_HOOKS)
    if any(isinstance(func, ir.Attr) and id(func.value) not in networks for func in hooks):
        return True
    others = networks | of_new_tensors(summary.function.body)
    return summary.notes.gradients or asked_for(summary, others, new_leaves(summary)) in (REQUIRES, ASKED)


#: methods of tensors that give their gradient to the program
_GRADIENT_HOOKS = frozenset({"register_hook", "retain_grad", "register_post_accumulate_grad_hook"})
#: every file that trains holds one of these names
_TRAINING = frozenset({"backward", "zero_grad", "optim", "optimizer", "optimizers", "Optimizer", "requires_grad"})


def _only_shows(summary: Summary, run: ModelRun) -> bool:
    """Whether the output is only passed on, in a file that trains nothing: to code that shows, scores or writes it, or
    answers a request with it. False if the function returns it to other code or stores it in the object."""
    return not _TRAINING & summary.module.names and is_only_passed_on(summary, run)


def _is_evaluation(analyser: Analyser, summary: Summary, verdict: Verdict, kept: dict[Source, Keeper]) -> bool:
    """Whether a recorded run belongs to an evaluation. A place that keeps its graph for no backward is evidence
    enough."""
    if verdict.evaluation not in ("", "cut"):
        return not verdict.wanted
    run = verdict.run
    keeper = kept.get(run.node)
    if keeper is None or keeper.unneeded == "low" or run.origin is not None or run.loop is None:
        return False
    if any(run.node in reached for reached, *_ in summary.backwards) or reason_gradients_needed(analyser, summary, run):
        return False
    verdict.evaluation = "kept"
    return True


def _event(
    summary: Summary,
    verdict: Verdict,
    loop: Loop | None,
    certainty: Confidence,
    consumed: Literal["detached", "escapes", "loss", "dropped"],
    *,
    keeper: Keeper | None = None,
    owner: Fact = "unknown",
    phase: Phase | None = None,
    beside: bool = False,
    group: Sequence[Verdict] = (),
) -> ModelCall:
    """The event of one run. ``group``: all runs that the event covers, if there are several."""
    run = verdict.run
    return ModelCall(
        site=run.site,
        function=summary.function.qual,
        certainty=certainty,
        trace=(*run.trace, *verdict.unguarded, *((verdict.thread,) if verdict.thread is not None else ())),
        module=run.text,
        loop=loop,
        evaluation=verdict.evaluation,
        retained=keeper.place if keeper is not None else "",
        rounds=keeper.rounds if keeper is not None else None,
        on_host=run.value.device == CPU,
        keeping=(keeper.step,) if keeper is not None and keeper.step is not None else (),
        owner=owner,
        guard="",
        consumed=consumed,
        held=_held_by(summary, run),
        called=run.called,
        named=is_evaluation_name(summary.function),
        followed=run.resolved or trains_otherwise(summary, run),
        served=run.served,
        phase=phase.quiet if phase is not None else "",
        training=phase.training if phase is not None else "",
        beside_training=beside,
        unguarded=bool(verdict.unguarded),
        large=runs_a_large_network(summary.analyser, summary, run),
        single=bool(run.loop and run.loop.loop.single) or runs_on_one_sample(summary.analyser, summary, run),
        small=all(is_small(summary.analyser, summary, one.run) for one in group or (verdict,)),
    )


def is_small(analyser: Analyser, summary: Summary, run: ModelRun) -> bool:
    """Whether the graph of a run takes little memory: by the network's layers, or because the input is one sample."""
    if runs_a_large_network(analyser, summary, run):
        return False
    if runs_on_written_numbers(summary, run) or runs_on_one_state(analyser, summary, run):
        return True
    if is_of_rows(run) and gives_one_row(summary, run):
        return True
    size = size_of_network(analyser, summary, run)
    if size or run.module.is_of_library():  # the graph of a pretrained library model is not small, even for one sample
        return size == "small"
    return runs_on_one_sample(analyser, summary, run) and not shows_a_picture(summary, run)


def _held_by(summary: Summary, run: ModelRun) -> str:
    """The attribute of ``self`` or the global that holds the run's output with its graph; "" if there is none."""
    own = f"p:{summary.function.own_name}"
    if summary.exit is None:
        return ""
    held = places_with(summary, summary.exit, run.marks)
    return min((place.text for place in held if place.root == own or place.root.startswith("g:")), default="")


def _keeper(summary: Summary, runs: list[ModelRun], kept: dict[Source, Keeper]) -> Keeper | None:
    """The place that keeps the graph of one of these runs; None if there is none."""
    # of the run's marks, those of its inputs are no nodes
    nodes = (node for run in runs for node in sorted(run.marks & summary.graphs.nodes.keys(), key=repr))
    return next((kept[node] for node in nodes if node in kept), None)


def _on_their_own(group: list[Verdict], groups: dict[Source, list[Verdict]]) -> list[Verdict]:
    """The runs outside loops that the event of an evaluation loop does not cover: those of another model that the
    function puts into eval mode (``best = torch.load(path)``)."""
    looped = {
        item.run.text.partition(".")[0]
        for other, items in groups.items()
        if other != ("function",)
        for item in items
        if item.evaluation == "eval"
    }
    if not looped:
        return group
    return [item for item in group if item.run.mode is True and item.run.text.partition(".")[0] not in looped]


def _apart(group: list[Verdict]) -> list[list[Verdict]]:
    """The runs of a group, split so that mutually exclusive branches with different models are in different groups."""
    apart: list[list[Verdict]] = []
    # a run inside a callee has no tests of this function
    tests = {item.run.site: item.run.tests for item in group if item.run.origin is None}
    for item in group:
        around = tests.get(item.run.site, ())
        for others in apart:
            same = any(item.run.text == one.run.text for one in others)
            if same or not excluded(around, tests.get(others[0].run.site, ())):
                others.append(item)
                break
        else:
            apart.append([item])
    return apart


def _is_script(analyser: Analyser, summary: Summary, loop: Loop | None, run: ModelRun) -> bool:
    """Whether module-level code applies a model in a loop, in a file that defines no networks of its own."""
    applied = is_script_loop(summary, loop, loaded=run.module.is_unpickled())
    return summary.function.node is None and applied and not _defines_modules(analyser, summary)


def _applies(analyser: Analyser, summary: Summary, verdict: Verdict) -> bool:
    """Whether module-level code runs a trained model for real, and not as a demonstration: the model is in eval mode,
    or was loaded whole and nothing needs its gradients; its input comes from a file or a camera, or its weights were
    loaded; and the file defines no networks."""
    run = verdict.run
    loaded = run.module.is_unpickled()
    evaluated = verdict.evaluation == "eval" and run.mode is True
    if summary.function.node is not None or run.probes or not (evaluated or (loaded and verdict.evaluation == "spent")):
        return False
    return (not run.drawn or loaded or loads_weights(summary)) and not _defines_modules(analyser, summary)


def _defines_modules(analyser: Analyser, summary: Summary) -> bool:
    module = summary.module
    classes = (module.cls(unit.name) for unit in module.index.units)
    return any(cls is not None and analyser.program.is_module(cls) for cls in classes)
