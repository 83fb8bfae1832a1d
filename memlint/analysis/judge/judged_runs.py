"""The judgement of one recorded model run: whether it is an evaluation, and by which evidence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from memlint.analysis.demand.deliberate_graphs import guarded_in_another_branch
from memlint.analysis.demand.gradient_demand import REACHED, asked_for, reason_gradients_needed, trained_by_callers
from memlint.analysis.demand.teacher_networks import teaches
from memlint.analysis.demand.unneeded_runs import gives_a_graph, records_unneeded_graph
from memlint.analysis.demand.used_up_graphs import is_spent, is_trial
from memlint.analysis.domain.events import Loop, Step
from memlint.analysis.domain.periods import runs_once
from memlint.analysis.domain.state import AMBIENT, OFF, ON
from memlint.analysis.domain.summary.effects import ModelRun
from memlint.analysis.domain.summary.observations import MAX_CALLERS_UP
from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.facts.module_facts import context_mode
from memlint.analysis.facts.repeats import each_call, repeated
from memlint.analysis.index.program import Function
from memlint.analysis.index.roles_by_name import is_evaluation_name, is_test
from memlint.analysis.index.uses import of_module
from memlint.analysis.judge.phases import Phase, phase_of
from memlint.analysis.judge.run_reasons import report_run_reason
from memlint.analysis.judge.sizes.large_networks import starts_evaluating
from memlint.analysis.transfer.library.threads import out_of_guard
from memlint.analysis.transfer.stores.collected import gives_no_graph, may_give_no_graph

if TYPE_CHECKING:
    from memlint.analysis.facts.analyser import Analyser

#: methods of a module that run under whatever mode their caller has
_LAYER_METHODS = frozenset({"forward", "__call__", "training_step", "compute_loss"})


@dataclass
class Verdict:
    """What a recorded model run is. ``evaluation`` and ``wanted``: see `ModelCall`."""

    run: ModelRun
    evaluation: Literal["eval", "spent", "kept", "beside", "name", "cut", ""]
    wanted: str
    phase: Phase | None = None
    #: the call that leaves grad mode on, and one that turns it off; none where all leave it on
    unguarded: tuple[Step, ...] = ()
    #: the start of the thread that runs it, by code that has turned grad mode off
    thread: Step | None = None


def judge_run(analyser: Analyser, summary: Summary, run: ModelRun) -> Verdict | None:
    """Whether a run is an evaluation and whether its gradients are wanted; None where it does not record."""
    verdicts = summary.notes.verdicts
    if run.key not in verdicts:
        verdicts[run.key] = None  # asked again while it is judged: callers that call each other
        verdicts[run.key] = _judge_run(analyser, summary, run)
    return verdicts[run.key]


def _judge_run(analyser: Analyser, summary: Summary, run: ModelRun) -> Verdict | None:
    always = records(analyser, summary, run)
    if not always and _teaches_in_a_phase(analyser, summary, run):
        return Verdict(run, "eval", REACHED)
    unguarded = () if always else unguarded_call(analyser, summary, run)
    if not (always or unguarded):
        report_run_reason(analyser, summary, run, "dropped", "not-recorded")
        return None
    if gives_no_graph(summary, run):
        report_run_reason(analyser, summary, run, "dropped", "gives-no-graph")
        return None
    if unguarded and may_give_no_graph(summary, run):
        report_run_reason(analyser, summary, run, "dropped", "gives-no-graph")
        return None  # (that call may be the one for which it raises)
    mode = _mode(analyser, summary, run)
    named = is_evaluation_name(summary.function) and run.origin is None
    evaluation: Literal["eval", "spent", "name", ""] = "name" if named and mode is None else ""
    if mode is True:
        evaluation = "eval"
    matters = evaluation != "eval" and (named or _matters(analyser, summary, run))
    made_to = matters and mode is None and starts_evaluating(analyser, summary, run)
    if matters and is_spent(analyser, summary, run, of_library=made_to):
        # (beside what its callers train by, it is no evaluation)
        beside = not named and not summary.backwards and trained_by_callers(analyser, summary, run)
        evaluation = "" if beside else "spent"
        if evaluation and made_to:
            evaluation = "eval"
    if unguarded and evaluation != "eval":
        report_run_reason(analyser, summary, run, "dropped", "only-some-callers")
        return None  # (the call that turns grad mode off may be the one for evaluations)
    if mode is not True and (phase := phase_of(summary, run)) is not None and not asked_for(summary):
        return Verdict(run, "eval", "", phase)
    plain = not evaluation and not summary.may_train and not summary.notes.gradients
    thread = out_of_guard(analyser, summary.function) if plain else None
    if thread is not None:
        evaluation = "eval"
    if not evaluation:
        trains = bool(summary.backwards) or trained_by_callers(analyser, summary, run)
        return Verdict(run, "cut" if trains and records_unneeded_graph(analyser, summary, run) else "", "")
    if context_mode(analyser, summary, run.module, "frozen") is True or guarded_in_another_branch(summary, run):
        report_run_reason(analyser, summary, run, "dropped", "frozen")
        return None
    return Verdict(run, evaluation, reason_gradients_needed(analyser, summary, run), unguarded=unguarded, thread=thread)


def _mode(analyser: Analyser, summary: Summary, run: ModelRun) -> bool | None:
    """Whether the model is in eval mode, by the function itself or by its context (callers, class, file); None for
    unknown."""
    if run.mode is None and run.mode_key is None and not of_module(analyser, summary.function):
        # (where a module's own method runs its parts, the call of that method is the place for the guard)
        return context_mode(analyser, summary, run.module, "")
    return run.mode


def _teaches_in_a_phase(analyser: Analyser, summary: Summary, run: ModelRun) -> bool:
    """Whether it is a teacher's run under ``set_grad_enabled(phase == "train")``, a guard that is the student's: in the
    phase that trains, the teacher records as well."""
    if run.grad != ON | OFF or _mode(analyser, summary, run) is not True or asked_for(summary):
        return False
    if gives_no_graph(summary, run) or guarded_in_another_branch(summary, run):
        return False
    return context_mode(analyser, summary, run.module, "frozen") is not True and teaches(analyser, summary, run)


def _matters(analyser: Analyser, summary: Summary, run: ModelRun) -> bool:
    """Whether a run that only its use shows to be an evaluation comes again and again, outside of layers. (A module's
    method has to use it up itself and give no other graph, and who calls it has to be in sight: others may well call it
    under a guard.)"""
    function = summary.function
    if of_module(analyser, function) and (
        consumed_as(summary, run) == "escapes" or gives_a_graph(summary) or _unguarded(analyser, function, frozenset())
    ):
        return False
    if is_trial(function) and function.node is not None:
        return False
    if function.node is None and run.module.is_unpickled():
        return True  # (a script that loads the model whole is there to apply it)
    return loop_of(analyser, summary, run) is not None or repeated(analyser, function) is not None


def unguarded_module(analyser: Analyser, summary: Summary) -> bool:
    """Whether this is a method of a module that is called by a name that is computed, in sight by its own methods at
    most: who makes those calls may well guard them."""
    function = summary.function
    while function.enclosing is not None:
        function = function.enclosing
    if function.cls is None or not analyser.facts.attributes.dispatches(function.cls):
        return False
    return _unguarded(analyser, summary.function, frozenset())


def _unguarded(analyser: Analyser, function: Function, trail: frozenset[tuple[str, str]]) -> bool:
    while function.enclosing is not None:
        function = function.enclosing
    if not of_module(analyser, function):
        return False
    if function.key in trail or len(trail) > MAX_CALLERS_UP:
        return True
    return all(
        _unguarded(analyser, caller.function, trail | {function.key}) for caller, _ in analyser.facts.calls_of(function)
    )


def is_layer_code(analyser: Analyser, summary: Summary) -> bool:
    """A forward runs under whatever mode its caller has, and so do the module's methods that only it calls."""
    return of_layers(analyser, summary.function)


def of_layers(analyser: Analyser, function: Function, depth: int = 0) -> bool:
    """Whether the function is a forward, or a method of a module that only forwards call."""
    inner: Function | None = function
    while inner is not None:
        named = inner.name in _LAYER_METHODS or inner.name.startswith("forward_")
        if inner.cls is not None and named and analyser.program.is_module(inner.cls):
            return True
        inner = inner.enclosing
    if depth >= MAX_CALLERS_UP or not of_module(analyser, function):
        return False
    callers = {caller.function.key: caller.function for caller, _ in analyser.facts.calls_of(function)}
    callers.pop(function.key, None)
    return bool(callers) and all(of_layers(analyser, caller, depth + 1) for caller in callers.values())


def records(analyser: Analyser, summary: Summary, run: ModelRun) -> bool:
    """Whether autograd records for certain on the way that leads here."""
    if run.grad == ON:
        return True
    if run.grad == AMBIENT:
        return analyser.facts.modes.of(summary.function) == ON
    return False


def unguarded_call(analyser: Analyser, summary: Summary, run: ModelRun) -> tuple[Step, ...]:
    """A call of the function that leaves grad mode on for certain, and one that turns it off. (Where it does not
    set the mode of the model itself, what it runs is judged for each of its callers.) None where it gives a graph to
    a caller that may train by it, or where some code may turn grad mode off for all that follows."""
    if run.grad != AMBIENT or run.mode_key is None or analyser.facts.modes.of(summary.function) != ON | OFF:
        return ()
    if analyser.program.words.files("set_grad_enabled"):
        return ()
    gives = gives_a_graph(summary)
    sites = []
    guarded = []
    for caller, record in analyser.facts.calls_of(summary.function):
        grad = analyser.facts.modes.of(caller.function) if record.grad == AMBIENT else record.grad
        if grad == OFF:
            guarded.append(caller.site(record.at))
        elif grad == ON and caller.function.key != summary.function.key and not is_test(caller.function):
            if gives and not _uses_up(caller, record.at, summary.function):
                return ()
            sites.append(caller.site(record.at))
    if not sites:
        return ()
    name = summary.function.name
    step = Step(sites[0], f"calls `{name}` with grad mode on", decides=tuple(sites[1:]))
    return step, *(Step(site, f"calls `{name}` with grad mode off") for site in guarded[:1])


def _uses_up(caller: Summary, at: int, callee: Function) -> bool:
    """Whether the graphs that a call returns end in the caller: it neither returns, keeps nor passes them on, and runs
    no backward through them."""
    call = (at, callee.module.key, callee.qual)
    given = {key for key in caller.graphs.nodes if isinstance(key, tuple) and key[:3] == call}
    kept = [] if caller.exit is None else [value.src for value in caller.exit.sym.values()]
    left = caller.graphs.closure(caller.notes.returned.union(*kept)) | caller.escaped
    return bool(given) and not given & left and not any(given & reached for reached, *_ in caller.backwards)


def loop_of(analyser: Analyser, summary: Summary, run: ModelRun) -> Loop | None:
    """The loop around the call, here or around every call of this function, that runs it more than once."""
    if run.loop is not None:
        return None if runs_once(run.loop) else run.loop.loop
    for _, record in analyser.facts.calls_of(summary.function):
        if record.counts:
            return each_call(summary.function)
    return None


def consumed_as(summary: Summary, run: ModelRun) -> Literal["detached", "escapes", "loss", "dropped"]:
    """What becomes of a run's output, as `ModelCall.consumed` names it."""
    marks = {run.node, *run.value.src}
    if marks & summary.notes.returned or marks & summary.escaped:
        return "escapes"
    return "detached" if marks & summary.used else "dropped"
