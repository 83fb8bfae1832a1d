"""``torch.cuda.empty_cache()`` in a function that runs for each batch: a step, a hook, the forward of a module."""

from __future__ import annotations

from memlint.sdk.project import Analyser, Function, Summary, each_call, is_test, layer_code, repeated
from memlint.sdk.syntax import assigned_names, bodies, calls, ir, walk_statements

from .places import (
    OPTIMIZES,
    OTHER_MODEL,
    Emptied,
    asks_for_device,
    in_each_round,
    moves_model,
    only_empties,
    over_data,
    setting,
    steps,
)

#: how many levels of callers are searched for the forward of a module
_DEPTH = 3
#: calls of each training step
_OF_STEPS = frozenset({"backward", OPTIMIZES})


def in_each_call(analyser: Analyser, summary: Summary, expr: ir.Call) -> Emptied | None:
    """How often a function that runs for each batch reaches the call, on all paths; None if it does not."""
    function = summary.function
    if function.node is None or function.is_generator or is_test(function, by_name=summary.hook is None):
        return None
    if function.name.startswith("__") and function.name != "__call__":
        return None
    layers = layer_code(analyser, function)
    if moves_model(function.body, in_layers=layers):
        return None
    if any(over_data(loop.loop) for loop in summary.notes.rounds.values()):
        return None
    place = in_each_round(function.body, expr, into_loops=layers)
    if place is None:
        return None
    if layers:
        return Emptied(place, each_call(function), data=False)
    if _step_or_hook(analyser, function):
        return Emptied(place, each_call(function), data=True)
    if only_empties(analyser, function):
        return None  # it is reported at its call
    if _in_each_batch(analyser, function) or _in_each_step(analyser, function):
        return Emptied(place, each_call(function), data=True)
    if _from_forward(analyser, function, frozenset()):
        return Emptied(place, each_call(function), data=False)
    return None


def _step_or_hook(analyser: Analyser, function: Function) -> bool:
    """Whether each call of a function is one training step, or a framework calls it for each batch."""
    hook = analyser.hook(function)
    if hook is not None:
        return hook.every == "iteration"
    if function.name == OPTIMIZES and function.cls is not None:
        return True
    loops = any(isinstance(one, ir.For | ir.While) for one in walk_statements(function.body) if _trains(one))
    return steps(function.body) and not loops and repeated(analyser, function) is not None


def _trains(statement: ir.Stmt) -> bool:
    """Whether a loop contains a training step, or its parts."""
    return isinstance(statement, ir.For | ir.While) and (
        steps(statement.body)
        or any(isinstance(call.func, ir.Attr) and call.func.name in _OF_STEPS for call in calls(statement.body))
    )


def _in_each_batch(analyser: Analyser, function: Function) -> bool:
    """Whether each iteration of a loop over a loader calls it, on all paths."""
    for caller, record in analyser.facts.calls_of(function):
        loop = caller.notes.rounds.get(record.loops[-1]) if record.loops else None
        if loop is None or not over_data(loop.loop) or is_test(caller.function) or "epoch" in loop.loop.text.lower():
            continue  # (``while self.epoch < self.epochs:``)
        if any(OTHER_MODEL.search(name.lower()) for name in loop.targets):
            continue  # a task with its own training: ``for train_loader, valid_loader in zip(…)``
        if any(
            record.at in {call.at for call in calls((one,))}
            for one in loop.body
            if not isinstance(one, ir.If | ir.For | ir.While | ir.Try)
        ):
            return True
    return False


def _in_each_step(analyser: Analyser, function: Function) -> bool:
    """Whether a training step calls it on all paths."""
    return any(
        caller.function.node is not None
        and not layer_code(analyser, caller.function)
        and _comes_to(caller.function.body, record.at)
        and _step_or_hook(analyser, caller.function)
        for caller, record in analyser.facts.calls_of(function)
    )


def _comes_to(body: tuple[ir.Stmt, ...], at: int) -> bool:
    """Whether a block always reaches a call, or always if a setting holds."""
    bound = assigned_names(body)[0]
    for statement in body:
        if not any(call.at == at for call in calls((statement,))):
            continue
        if isinstance(statement, ir.If) and (setting(statement.test, bound) or asks_for_device(statement.test)):
            return any(_comes_to(block, at) for block in bodies(statement))
        return _comes_to(statement.body, at) if isinstance(statement, ir.With) else not bodies(statement)
    return False


def _from_forward(analyser: Analyser, function: Function, trail: frozenset[tuple[str, str]]) -> bool:
    """Whether the forward of a module calls it, transitively."""
    if len(trail) >= _DEPTH or function.key in trail:
        return False
    return any(
        layer_code(analyser, caller.function) or _from_forward(analyser, caller.function, trail | {function.key})
        for caller, _ in analyser.facts.calls_of(function)
        if caller.function.node is not None
    )


__all__ = ["in_each_call"]
