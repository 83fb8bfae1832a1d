"""Graphs that a function uses up: every use of the output cuts the graph, and nothing stores or returns it.

If autograd records such a model run, the saved activations are useless, whatever the model's mode and the function's
name: the uses prove that nothing needs a gradient.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING

from memlint.analysis.domain.events import Loop
from memlint.analysis.domain.state import AMBIENT, ON
from memlint.analysis.domain.summary.effects import ModelRun
from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.domain.values import CONTAINER, TENSORS, UNKNOWN, Source
from memlint.analysis.facts.calls_by_name import has_known_callers
from memlint.analysis.index.program import Function
from memlint.analysis.index.roles_by_name import named_test
from memlint.analysis.index.uses import detached_models
from memlint.analysis.syntax.bindings import names_bound_by, reads_any, targets
from memlint.analysis.syntax.syntax import (
    expressions,
    parts,
    parts_of,
    statement_at,
    walk_expression,
    walk_statements,
    way_to,
)
from memlint.analysis.transfer.held_values import places_with, tensors_within, variables_with
from memlint.analysis.transfer.stores.collected import is_unpacked
from memlint.ir import nodes as ir

if TYPE_CHECKING:
    from memlint.analysis.facts.analyser import Analyser

#: names of functions that load weights from a file
_LOADING = frozenset({"load_state_dict", "load_from_checkpoint", "load_model", "load_weights", "restore"})
#: how many callers up a returned output is followed
MAX_CALLERS_UP = 2


def is_spent(analyser: Analyser, summary: Summary, run: ModelRun, *, of_library: bool = False) -> bool:
    """Whether every use of a run's graph cuts it: in this function, or in every caller to which it is returned.
    ``of_library``: callers show that a library made the module."""
    trained = summary.hook is not None and not summary.answers
    if trained or (run.origin is not None and not _is_given_back(run)):
        return False
    loop = run.loop.loop if run.loop is not None else None
    trains = trains_otherwise(summary, run)
    applied = run.module.is_unpickled() or is_script_loop(summary, loop) or (trains and loop is not None)
    if summary.function.node is None and not applied:
        return False  # a single module-level forward may be meant for importers
    known = run.resolved or run.method == "forward" or trains or of_library or run.module.is_of_library()
    known = known or (not run.served and not detached_models(summary.function.body).isdisjoint(_names_of(run)))
    if not known and not _records_inside(analyser, run.method, summary.function):
        return False
    marks = run.marks & summary.graphs.nodes.keys()
    if not marks or (summary.backwards and not trains) or trains_inside(analyser, summary, run):
        return False
    dropped = run.origin is None and (
        _is_unpacked_without_graph(summary, run, marks) or _is_dropped_each_round(summary, run)
    )
    return used_up(analyser, summary, marks, dropped=dropped)


def _is_dropped_each_round(summary: Summary, run: ModelRun) -> bool:
    """Whether a loop over data runs the model only for its hooks. A timing loop does not run over data."""
    loop = run.loop.loop if run.loop is not None else None
    through = loop is not None and loop.kind == "for" and (loop.over_data or loop.names_samples)
    return through and is_dropped(summary, run)


def is_dropped(summary: Summary, run: ModelRun) -> bool:
    """Whether the output is dropped at once: the call is a statement of its own (``net(x)``), or binds ``_`` alone, and
    the function does not read that."""
    statement = statement_at(summary.function.body, run.site.at) if run.origin is None else None
    if isinstance(statement, ir.Assign) and [getattr(one, "id", "") for one in statement.targets] == ["_"]:
        return statement.value.at == run.site.at and not _is_read(summary.function.body, "_")
    return isinstance(statement, ir.ExprStmt) and statement.value.at == run.site.at


def _is_read(body: tuple[ir.Stmt, ...], name: str) -> bool:
    """Whether a body reads a variable, in a definition inside it as well."""
    return any(reads_any(expr, {name}) for statement in walk_statements(body) for expr in _read_in(statement))


def _bound(statement: ir.Stmt) -> tuple[ir.Expr, ...]:
    return (statement.target,) if isinstance(statement, ir.For) else targets(statement)


def trains_inside(analyser: Analyser, summary: Summary, run: ModelRun) -> bool:
    """Whether the call runs a method with its own backward and optimizer step, ``loss =
    self.training_step(batch).item()``, or with a backward through what it returns. An attack runs a backward through
    another graph."""
    called = (analyser.function_at(record.callee) for record in summary.calls_at(run.site.at))
    inner = (analyser.summary(function) for function in called if function is not None)
    return any(one is not None and _trains_by_result(one) for one in inner)


def _trains_by_result(callee: Summary) -> bool:
    if "step" in callee.function.names:
        return bool(callee.backwards) or callee.notes.blind_backward
    return any(not callee.notes.returned.isdisjoint(backward.reached) for backward in callee.backwards)


def _is_unpacked_without_graph(summary: Summary, run: ModelRun, marks: AbstractSet[Source]) -> bool:
    """Whether the output is unpacked and only parts without a graph are read: ``_, _, action = policy(state)``. If no
    part has the graph, the run is that of another network: one that returns no tuple cannot be unpacked here."""
    statements = list(walk_statements(summary.function.body, into_definitions=False))
    own = next((one for one in statements if isinstance(one, ir.Assign) and is_unpacked(one, run)), None)
    if own is None or summary.last is None:
        return False
    env = summary.last.env
    held = _rebound(summary.function.body, own) | {
        name
        for name in names_bound_by(own)
        if name not in env or marks & summary.graphs.closure(tensors_within(summary, summary.last, env[name]).src)
    }
    read = any(reads_any(expr, held) for one in statements if one is not own for expr in _read_in(one))
    return bool(held) and not read


def _read_in(statement: ir.Stmt) -> list[ir.Expr]:
    """The expressions of a statement, the variables that it binds left out."""
    bound = [one for one in _bound(statement) if isinstance(one, ir.Name | ir.Display)]
    return [expr for expr in expressions(statement) if not any(expr is one for one in bound)]


def _rebound(body: tuple[ir.Stmt, ...], own: ir.Assign) -> set[str]:
    """The parts that are bound anew after the statement that unpacks, and not from themselves: ``_, action =
    policy(state)`` before ``state, reward, _ = env.step(action)``. What they held is unknown then."""
    return {
        name
        for block, number in way_to(body, own.at)
        for one in walk_statements(block[number + 1 :], into_definitions=False)
        for name in names_bound_by(own) & names_bound_by(one)
        if not any(reads_any(expr, {name}) for expr in _read_in(one))
    }


def _is_given_back(run: ModelRun) -> bool:
    """Whether the helper that runs the model only returns its output, as the model's own forward does."""
    if run.origin is None:
        return True
    inner, origin = run.origin
    marks = origin.marks & inner.graphs.nodes.keys()
    return bool(marks & inner.notes.returned) and not inner.backwards and _is_given_back(origin)


def is_script_loop(summary: Summary, loop: Loop | None, *, loaded: bool = False) -> bool:
    """Whether a loop in module-level code applies a trained model: it runs over data, or it is a loop of unknown length
    in a file that loads weights or the whole model (``loaded``)."""
    if loop is None or loop.over_data:
        return loop is not None
    rounds = loop.kind == "while" or (loop.kind == "for" and loop.over == "unknown" and loop.trips is None)
    return rounds and (loaded or loads_weights(summary))


def loads_weights(summary: Summary) -> bool:
    """Whether the file names a function that loads weights."""
    return bool(_LOADING & summary.module.names)


def _records_inside(analyser: Analyser, method: str, asker: Function) -> bool:
    """Whether the project's methods of that name leave grad mode to their callers."""
    summaries = [analyser.summary(function) for function in analyser.methods_named(method, asker)]
    return bool(summaries) and all(
        summary is not None and any(run.grad & (AMBIENT | ON) for run in summary.runs.values()) for summary in summaries
    )


def trains_otherwise(summary: Summary, run: ModelRun) -> bool:
    """Whether another call of the same module reaches a backward, so that this run is not the one that trains. A module
    may train by its forward, and show samples by another method."""
    index = summary.run_index
    return any(
        other.node != run.node and (other.node in index.reached or not index.reached.isdisjoint(other.value.src))
        for name in _names_of(run)
        for other in index.of_text(name)
    )


def _names_of(run: ModelRun) -> set[str]:
    """What runs, by its text: the callee, and the object whose method it is if the function itself calls it."""
    return {run.text, run.text.rpartition(".")[0]} if run.origin is None else {run.text}


def used_up(
    analyser: Analyser,
    summary: Summary,
    marks: AbstractSet[Source],
    depth: int = 0,
    *,
    of_gradients: bool = False,
    dropped: bool = False,
    apart: Source | None = None,
) -> bool:
    """Whether every use of these graphs cuts them, here or in every caller that gets them, and nothing keeps them.

    ``of_gradients``: the graphs are those of gradients, which `autograd.grad` elsewhere does not concern. ``dropped``:
    no use at all counts as well. ``apart``: a place that keeps them and is judged on its own.
    """
    if summary.cut_short or summary.last is None or blindly_reached(summary, marks):
        return False
    if summary.notes.unknown_gradients and not of_gradients:
        return False
    if marks & (summary.left - summary.notes.logged) or any(marks & reached for reached, *_ in summary.backwards):
        return False
    if any(place != apart for place in places_with(summary, summary.last, marks)):
        return False
    if captured(summary, marks) or _lost(summary, marks):
        return False
    if marks & summary.notes.returned:
        return not decorator_trains(analyser, summary.function) and _used_up_by_callers(
            analyser, summary, depth, of_gradients
        )
    return dropped or bool(marks & summary.graphs.closure(summary.used | summary.notes.logged))


def decorator_trains(analyser: Analyser, function: Function) -> bool:
    """Whether a decorator of the project, which gets the function's result first, runs a backward."""
    for shown in function.decorators:
        name = shown.func if isinstance(shown, ir.Call) else shown
        kind, what = analyser.program.find_expression(function.module, name, function.around)
        if kind == "function" and what is not None and "backward" in what.names:
            return True
    return False


def blindly_reached(summary: Summary, marks: AbstractSet[Source]) -> bool:
    """Whether a backward with unknown sources may reach these graphs: one in this function, or one in a callee that
    gets them or an object that may hold them."""
    if summary.notes.blind_backward or not summary.notes.blind_calls:
        return summary.notes.blind_backward
    if summary.last is None or marks & (summary.left | summary.escaped):
        return True
    arguments = [
        value
        for record in summary.calls.values()
        if record.at in summary.notes.blind_calls
        for value in record.args.values()
    ]
    held = (tensors_within(summary, summary.last, value) for value in (*arguments, *summary.last.sym.values()))
    return any(marks & summary.graphs.closure(value.src) for value in held)


def is_trial(function: Function) -> bool:
    """Whether the code is a test, or module-level code: a finding there is true, but unimportant."""
    return function.node is None or named_test(function)


def _used_up_by_callers(analyser: Analyser, summary: Summary, depth: int, of_gradients: bool) -> bool:
    """Whether all callers are known, and every one uses the output up. Tests do not count as callers."""
    if not has_known_callers(analyser, summary.function):
        return False
    calls = [
        (caller, record)
        for caller, record in analyser.facts.calls_of(summary.function)
        if caller is not summary and (caller.function.node is None or not is_trial(caller.function))
    ]
    if not calls or depth >= MAX_CALLERS_UP:
        return False
    for caller, record in calls:
        if caller.last is None or caller.function.node is None:
            return False
        inner = {mark for mark in tensors_within(caller, caller.last, record.result).src if mark in caller.graphs.nodes}
        if not inner or not used_up(analyser, caller, inner, depth + 1, of_gradients=of_gradients):
            return False
    return True


def _lost(summary: Summary, marks: AbstractSet[Source]) -> bool:
    """Whether a helper gets the graph and returns tensors of unknown graph, because nested containers lose it."""
    assert summary.last is not None
    for record in summary.calls.values():
        if not record.result.kinds & (TENSORS | CONTAINER | UNKNOWN):
            continue
        inputs = {
            source for value in record.args.values() for source in tensors_within(summary, summary.last, value).src
        }
        back = tensors_within(summary, summary.last, record.result)
        if (
            back.kinds & (TENSORS | UNKNOWN)
            and marks & summary.graphs.closure(inputs)
            and not marks & summary.graphs.closure(back.src)
        ):
            return True
    return False


def captured(summary: Summary, marks: AbstractSet[Source]) -> bool:
    """Whether a nested function reads a name that holds the graph."""
    assert summary.last is not None
    inner = [
        part
        for statement in walk_statements(summary.function.body)
        for part in ((statement,) if isinstance(statement, ir.FunctionDef) else _lambdas(statement))
    ]
    if not inner:
        return False
    holders = {*variables_with(summary, summary.last, marks)}
    return bool(holders) and any(_reads(part, holders) for part in inner)


def _lambdas(statement: ir.Stmt) -> list[ir.Lambda]:
    return [part for part in parts_of(statement) if isinstance(part, ir.Lambda)]


def _reads(part: ir.FunctionDef | ir.Lambda, names: set[str]) -> bool:
    names = names - {param.name for param in part.params}
    found = walk_expression(part.body) if isinstance(part, ir.Lambda) else parts(part.body, into_definitions=True)
    return any(isinstance(item, ir.Name) and item.id in names for item in found)
