"""The verdict on one recorded model run: whether it is an evaluation, and by which evidence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from memlint.analysis.demand.gradient_demand import REACHED, asked_for, reason_gradients_needed, trained_by_callers
from memlint.analysis.demand.layered_calls import guarded_in_another_branch
from memlint.analysis.demand.needed_later import stays_inside
from memlint.analysis.demand.unneeded_runs import gives_a_graph, records_unneeded_graph, teaches
from memlint.analysis.demand.used_up_graphs import is_spent, is_trial, used_up
from memlint.analysis.domain.events import Loop, Site, Step
from memlint.analysis.domain.periods import runs_once
from memlint.analysis.domain.state import AMBIENT, OFF, ON
from memlint.analysis.domain.summary.effects import ModelRun
from memlint.analysis.domain.summary.observations import MAX_CALLERS_UP
from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.domain.values import EMPTY
from memlint.analysis.facts.module_facts import context_mode
from memlint.analysis.facts.repeats import by_requests, each_call, is_started_elsewhere, repeated
from memlint.analysis.index.partners import is_of_idle_programs
from memlint.analysis.index.program import Function
from memlint.analysis.index.roles_by_name import is_evaluation_name, is_test
from memlint.analysis.index.uses import of_module
from memlint.analysis.judge.phases import phase_of
from memlint.analysis.judge.reasons import report_run_reason
from memlint.analysis.judge.roles import Phase
from memlint.analysis.judge.sizes.small_networks import starts_evaluating
from memlint.analysis.syntax.memo import kept_for
from memlint.analysis.syntax.syntax import calls, calls_backward, last_name, loops_around
from memlint.analysis.transfer.held_values import places_with
from memlint.analysis.transfer.library.threads import out_of_guard
from memlint.analysis.transfer.stores.collected import gives_no_graph, may_give_no_graph
from memlint.ir import nodes as ir

if TYPE_CHECKING:
    from memlint.analysis.facts.analyser import Analyser

#: methods of a module that run in the grad mode of their caller
_LAYER_METHODS = frozenset({"forward", "__call__", "training_step", "compute_loss"})

#: the most functions of a chain of callers that are asked for a call with grad mode on
MAX_CALLERS = 32


@dataclass
class Verdict:
    """What a recorded model run is. ``evaluation`` and ``wanted``: see `ModelCall`."""

    run: ModelRun
    evaluation: Literal["eval", "spent", "kept", "beside", "name", "cut", ""]
    wanted: str
    phase: Phase | None = None
    #: a call that leaves grad mode on and one that turns it off; empty if all calls leave it on
    unguarded: tuple[Step, ...] = ()
    #: where code that has turned grad mode off starts the thread that runs the model; None for no thread
    thread: Step | None = None


def judge_run(analyser: Analyser, summary: Summary, run: ModelRun) -> Verdict | None:
    """Whether a run is an evaluation, and whether its gradients are needed. None if it is not certain that autograd
    records, or if it is no finding for another reason."""
    verdicts = summary.notes.verdicts
    if run.key not in verdicts:
        verdicts[run.key] = None  # the answer for a recursive query: callers may call each other
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
        return None  # the call with grad mode on may be the one that would raise
    mode = _mode(analyser, summary, run)
    named = is_evaluation_name(summary.function) and run.origin is None
    evaluation: Literal["eval", "spent", "name", ""] = "name" if named and mode is None else ""
    if mode is True:
        evaluation = "eval"
    matters = evaluation != "eval" and (named or _matters(analyser, summary, run))
    made_to = matters and mode is None and starts_evaluating(analyser, summary, run)
    if matters and (is_spent(analyser, summary, run, of_library=made_to) or _is_idle(analyser, summary, run, mode)):
        # a run beside one that the callers train is no evaluation
        beside = not named and not summary.backwards and trained_by_callers(analyser, summary, run)
        evaluation = "" if beside else "spent"
        if evaluation and made_to:
            evaluation = "eval"
    if unguarded and evaluation != "eval" and not (evaluation == "spent" and ends_here(summary, run)):
        report_run_reason(analyser, summary, run, "dropped", "only-some-callers")
        return None  # the call that turns grad mode off may be the evaluation
    if mode is not True and (phase := phase_of(summary, run)) is not None and not asked_for(summary):
        return Verdict(run, "eval", "", phase)
    plain = not evaluation and not summary.may_train and not summary.notes.unknown_gradients
    thread = out_of_guard(analyser, summary.function) if plain else None
    if thread is not None:
        evaluation = "eval"
    if not evaluation:
        trains = summary.notes.trains_below or bool(summary.backwards) or trained_by_callers(analyser, summary, run)
        return Verdict(run, "cut" if trains and records_unneeded_graph(analyser, summary, run) else "", "")
    if context_mode(analyser, summary, run.module, "frozen") is True or guarded_in_another_branch(summary, run):
        report_run_reason(analyser, summary, run, "dropped", "frozen")
        return None
    return Verdict(run, evaluation, reason_gradients_needed(analyser, summary, run), unguarded=unguarded, thread=thread)


def _is_idle(analyser: Analyser, summary: Summary, run: ModelRun, mode: bool | None) -> bool:
    """Whether only programs that train nothing run the model, not set to train mode, and its output does not leave
    their code."""
    if mode is False or run.origin is not None:
        return False
    idle = is_of_idle_programs(analyser.program, analyser.facts.partners, summary.module.key)
    return idle and stays_inside(analyser, summary, run.marks)


def _mode(analyser: Analyser, summary: Summary, run: ModelRun) -> bool | None:
    """Whether the model is in eval mode, set by the function itself or by its context (callers, class, file). None if
    unknown."""
    if run.mode is None and run.mode_key is None and not of_module(analyser, summary.function):
        # the guard for a module's parts belongs at the call of the module's method
        return context_mode(analyser, summary, run.module, "")
    return run.mode


def _teaches_in_a_phase(analyser: Analyser, summary: Summary, run: ModelRun) -> bool:
    """Whether a teacher runs under ``set_grad_enabled(phase == "train")``, a guard that is meant for the student: in
    the training phase, autograd records the teacher as well."""
    if run.grad != ON | OFF or _mode(analyser, summary, run) is not True or asked_for(summary):
        return False
    if gives_no_graph(summary, run) or guarded_in_another_branch(summary, run):
        return False
    return context_mode(analyser, summary, run.module, "frozen") is not True and teaches(analyser, summary, run)


def _matters(analyser: Analyser, summary: Summary, run: ModelRun) -> bool:
    """Whether a run without an eval mode, which only its use marks as an evaluation, repeats outside of layer code.

    A module's method has to use up the output itself and return no other graph, and its callers have to be known:
    unknown ones may well set a guard.
    """
    function = summary.function
    if of_module(analyser, function) and (
        consumed_as(summary, run) == "escapes" or gives_a_graph(summary) or _unguarded(analyser, function, frozenset())
    ):
        return False
    if is_trial(function) and function.node is not None:
        return False
    if function.node is None and run.module.is_unpickled():
        return True  # a script that loads the whole model is there to apply it
    if loop_of(analyser, summary, run) is not None or repeated(analyser, function) is not None:
        return True
    if summary.backwards or loops_around(function.body, run.site.at):
        return False  # a loop around the run has few iterations, as far as is known
    if any("optim" in name.lower() for name in function.names):
        return False  # a step of training
    return is_started_elsewhere(analyser, function)


def unguarded_module(analyser: Analyser, summary: Summary) -> bool:
    """Whether the function is a method of a module that is called by a computed name, and whose known callers are all
    methods of modules. The code that makes the computed calls may set a guard."""
    function = summary.function
    while function.enclosing is not None:
        function = function.enclosing
    if function.cls is None or not analyser.facts.attributes.dispatches(function.cls):
        return False
    return _unguarded(analyser, summary.function, frozenset())


def _unguarded(analyser: Analyser, function: Function, trail: frozenset[tuple[str, str]]) -> bool:
    """Whether all known callers, transitively up to a limit, are methods of modules."""
    while function.enclosing is not None:
        function = function.enclosing
    if not of_module(analyser, function):
        return False
    if function.key in trail or len(trail) > MAX_CALLERS_UP:
        return True
    return all(
        _unguarded(analyser, caller.function, trail | {function.key}) for caller, _ in analyser.facts.calls_of(function)
    )


def runs_in_callers_mode(analyser: Analyser, summary: Summary) -> bool:
    """Whether the guard of a function's runs belongs to its caller: the function is layer code, and not one that puts a
    network into eval mode, runs it in a loop and uses up what it gives, which evaluates, whoever calls it."""
    return of_layers(analyser, summary.function) and not _evaluates(summary)


def _evaluates(summary: Summary) -> bool:
    """Whether a function other than a forward sets eval mode itself, runs in a loop what is in that mode, and neither
    returns nor stores a graph: a network with its batch norm in eval mode is trained by what its method gives."""
    if summary.function.name in _LAYER_METHODS or gives_a_graph(summary):
        return False
    if not any(isinstance(call.func, ir.Attr) and call.func.name == "eval" for call in calls(summary.function.body)):
        return False
    runs = [run for run in summary.runs.values() if run.mode is True and run.loop is not None]
    return bool(runs) and not any(
        consumed_as(summary, run) == "escapes" or places_with(summary, summary.exit, run.marks) for run in runs
    )


def of_layers(analyser: Analyser, function: Function, depth: int = 0) -> bool:
    """Whether the function is a forward, or a method of a module that only forwards call: it runs in the grad mode of
    its caller, its loops run over layers, heads or time steps, and its local values die with the call. A forward that
    trains is none."""
    inner: Function | None = function
    while inner is not None:
        named = inner.name in _LAYER_METHODS or inner.name.startswith("forward_")
        if inner.cls is not None and named and analyser.program.is_module(inner.cls):
            return not _steps(inner)
        inner = inner.enclosing
    if depth >= MAX_CALLERS_UP or not of_module(analyser, function):
        return False
    callers = {caller.function.key: caller.function for caller, _ in analyser.facts.calls_of(function)}
    callers.pop(function.key, None)
    return bool(callers) and all(of_layers(analyser, caller, depth + 1) for caller in callers.values())


@kept_for
def _steps(function: Function) -> bool:
    """Whether a forward runs a backward and an optimizer's step: it is a training step, and no layer."""
    return calls_backward(function.body) and any(last_name(call.func) == "step" for call in calls(function.body))


def records(analyser: Analyser, summary: Summary, run: ModelRun) -> bool:
    """Whether it is certain that autograd records the run."""
    if run.grad == ON:
        return True
    if run.grad == AMBIENT:
        return analyser.facts.modes.of(summary.function) == ON
    return False


def unguarded_call(analyser: Analyser, summary: Summary, run: ModelRun) -> tuple[Step, ...]:
    """A call of the function that leaves grad mode on for certain, and one that turns it off, as trace steps.

    Empty if not both kinds of calls are known, or if the function neither sets the model's mode itself nor cuts the
    graph: its runs are then judged in each caller. Also empty if the function returns a graph to a caller that may
    train by it (one that is named as an evaluation does not), or if some code may turn grad mode off globally.
    """
    if run.grad != AMBIENT or analyser.facts.modes.of(summary.function) != ON | OFF:
        return ()
    if run.mode_key is None and not ends_here(summary, run):
        return ()
    if analyser.program.words.files("set_grad_enabled"):
        return ()
    gives = gives_a_graph(summary)
    sites: list[tuple[Site, str]] = []
    guarded: list[tuple[Site, str]] = []
    todo, seen = [summary.function], {summary.function.key}
    for function in todo:  # a caller in its own callers' mode is asked for these in turn
        for caller, record in analyser.facts.calls_of(function):
            place = caller.site(record.at), function.name
            grad = analyser.facts.modes.of_call(caller, record)
            if grad == OFF:
                guarded.append(place)
            elif caller.function.key in seen or is_test(caller.function):
                continue
            elif grad == ON and run.mode_key is None and True in record.modes.values():
                continue  # the caller puts the model into eval mode, so the guard is missing there
            elif grad == ON:
                if gives and not (is_evaluation_name(caller.function) or _uses_up(caller, record.at, function)):
                    return ()
                sites.append(place)
            elif (
                record.grad == AMBIENT
                and len(todo) < MAX_CALLERS
                and (not gives or _uses_up(caller, record.at, function, returned=True))
            ):
                seen.add(caller.function.key)
                todo.append(caller.function)
    if not sites:
        return ()
    first, name = sites[0]
    decides = tuple(site for site, _ in sites[1:MAX_CALLERS])
    step = Step(first, f"calls `{name}` with grad mode on", decides=decides)
    return step, *(Step(site, f"calls `{called}` with grad mode off") for site, called in guarded[:1])


def _uses_up(caller: Summary, at: int, callee: Function, *, returned: bool = False) -> bool:
    """Whether the graphs that a call returns end in the caller: it does not return (unless ``returned``), store or pass
    them on, and runs no backward through them."""
    call = (at, callee.module.key, callee.qual)
    results = {key for key in caller.graphs.nodes if isinstance(key, tuple) and key[:3] == call}
    kept = [] if caller.exit is None else [value.src for value in caller.exit.sym.values()]
    given = caller.notes.returned if not returned else EMPTY
    escaping = caller.graphs.closure(given.union(*kept)) | caller.escaped
    return bool(results) and not results & escaping and not any(results & reached for reached, *_ in caller.backwards)


def loop_of(analyser: Analyser, summary: Summary, run: ModelRun) -> Loop | None:
    """The loop that repeats the run, in this function or around a call of it, or the requests for which it is called.
    None if the run is known to happen once, or nothing is known to repeat it."""
    if run.loop is not None:
        return None if runs_once(run.loop) else run.loop.loop
    for _, record in analyser.facts.calls_of(summary.function):
        if record.counts:
            return each_call(summary.function)
    return by_requests(analyser, summary.function)


def ends_here(summary: Summary, run: ModelRun) -> bool:
    """Whether the function itself cuts the graph of a run that it makes: no caller can need it."""
    closure, marks = summary.graphs.closure, run.marks
    leaving = closure(summary.notes.returned | summary.escaped)
    return run.origin is None and marks.isdisjoint(leaving) and not marks.isdisjoint(closure(summary.used))


def consumed_as(summary: Summary, run: ModelRun) -> Literal["detached", "escapes", "loss", "dropped"]:
    """How the function uses a run's output, in the terms of `ModelCall.consumed`."""
    marks = run.marks
    if marks & summary.notes.returned or marks & summary.escaped:
        return "escapes"
    return "detached" if marks & summary.used else "dropped"


def consumed_finally(
    analyser: Analyser, summary: Summary, one: Verdict
) -> Literal["detached", "escapes", "loss", "dropped"]:
    """As `consumed_as`, but "detached" where the function makes an evaluation whose graph it returns, and all callers
    cut it."""
    consumed = consumed_as(summary, one.run)
    if consumed != "escapes" or one.evaluation != "eval" or one.run.origin is not None:
        return consumed
    marks = one.run.marks & summary.graphs.nodes.keys()
    return "detached" if used_up(analyser, summary, marks) else consumed
