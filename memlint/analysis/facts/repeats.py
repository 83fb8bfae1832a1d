"""What repeats a function: loops around calls of it, at any distance, and hooks of a framework."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from memlint.analysis.domain.bound_names import argument
from memlint.analysis.domain.events import Loop, Site
from memlint.analysis.index.definitions import functions_of
from memlint.analysis.index.program import Function, Module, in_tests
from memlint.analysis.syntax.expression_text import text
from memlint.analysis.syntax.syntax import call_at, calls, last_name, walk_statements
from memlint.ir import nodes as ir

if TYPE_CHECKING:
    from memlint.analysis.domain.summary.effects import LoopState
    from memlint.analysis.domain.summary.summary import Summary
    from memlint.analysis.facts.analyser import Analyser

#: through how many callers a loop is looked for
MAX_DEPTH = 5
#: what so many runs of a closure keep, once their backward has freed the activations, does not matter
FEW_RUNS = 100
#: the most callers, over all levels, that are examined for users of the library
MAX_CALLERS = 64


def repeated(analyser: Analyser, function: Function) -> Loop | None:
    """The repetition of a function's calls, if a loop around a call or a framework's hook shows one; else None."""
    return each_call(function) if _is_repeated(analyser, function, "iteration") else None


def by_requests(analyser: Analyser, function: Function) -> Loop | None:
    """The calls of a function that a runtime, itself or through callers, makes for each request; None if it is known to
    make none."""
    answers = _is_repeated(analyser, function, "request")
    return msgspec.structs.replace(each_call(function), over="requests") if answers else None


def each_call(function: Function) -> Loop:
    """The repetition of a function's calls, wherever they are."""
    at = function.node.at if function.node is not None else 0
    site = Site(function.module.key, function.unit, at)
    return Loop("calls", "unknown", "iteration", None, f"each call of {function.name}", site)


def is_training_step(analyser: Analyser, summary: Summary) -> bool:
    """Whether a function runs one backward and an optimizer step, and only tests start it: a single step trains
    nothing, so the loop must be in unknown code."""
    function = summary.function
    if function.node is None or not any(not loops for _, loops, *_ in summary.backwards):
        return False
    if not any(isinstance(call.func, ir.Attr) and call.func.name == "step" for call in calls(function.body)):
        return False
    return is_started_elsewhere(analyser, function)


def is_started_elsewhere(analyser: Analyser, function: Function) -> bool:
    """Whether no known call of the function is in a loop, and every chain of callers begins in a function without known
    calls, which users of the library call. A program calls its ``main`` once; a function that is passed as a value may
    be called by anything. Each function is examined once."""
    seen, todo = {function.key}, [function]
    while todo:
        callee = todo.pop()
        if callee.node is None or callee.name == "main" or len(seen) > MAX_CALLERS:
            return False
        if analyser.facts.is_handed_on(callee):
            return False
        for caller, record in analyser.facts.calls_of(callee):
            if in_tests(caller.module.key):
                continue
            if record.counts:
                return False
            if caller.function.key not in seen:
                seen.add(caller.function.key)
                todo.append(caller.function)
    return True


def is_run_by_optimizer(analyser: Analyser, function: Function) -> bool:
    """Whether one call of an optimizer's step outside of loops runs the function many times, as LBFGS does with many
    iterations a step: ``optimizer.step(closure)``. Other optimizers run a closure once or twice."""
    for caller, record in analyser.facts.calls_of(function):
        call = call_at(caller.function.body, record.at)
        if call is None or record.counts or not isinstance(call.func, ir.Attr) or call.func.name != "step":
            continue
        names = {text(arg).rpartition(".")[2] for arg in call.passed if isinstance(arg, ir.Name | ir.Attr)}
        if function.name in names and _runs_many(caller.module, text(call.func.value).rpartition(".")[2]):
            return True
    return False


def _runs_many(module: Module, optimizer: str) -> bool:
    """Whether a file makes an optimizer of a name that runs its closure many times in one step."""
    made = (
        one.value
        for function in functions_of(module)
        for one in walk_statements(function.body, into_definitions=False)
        if isinstance(one, ir.Assign) and isinstance(one.value, ir.Call) and last_name(one.value.func) == "LBFGS"
        if any(text(target).rpartition(".")[2] == optimizer for target in one.targets)
    )
    limits = (argument(one, 2, "max_iter") for one in made)
    return any(
        limit is not None
        and not (isinstance(limit, ir.Const) and isinstance(limit.value, int) and limit.value <= FEW_RUNS)
        for limit in limits
    )


def goes_on(held: LoopState) -> bool:
    """Whether a loop runs over data, to its end."""
    if not held.loop.over_data or held.over_objects or not held.counts:
        return False
    return not any(isinstance(one, ir.Jump) and one.kind == "break" for one in walk_statements(held.body, False))


def _is_repeated(analyser: Analyser, function: Function, every: Literal["iteration", "request"]) -> bool:
    """Whether a framework calls the function, or a transitive caller, in each iteration or for each request; a loop
    around such a call repeats it in each iteration. Breadth-first over the call graph, each function once."""
    seen = {function.key}
    near = [function]
    for _ in range(MAX_DEPTH + 1):
        callers: list[Function] = []
        for callee in near:
            if callee.node is None:
                continue
            hook = analyser.hook(callee)
            if hook is not None:
                if hook.every == every:
                    return True
                continue
            for caller, record in analyser.facts.calls_of(callee):
                if record.counts and every == "iteration":
                    return True
                if caller.function.key not in seen:
                    seen.add(caller.function.key)
                    callers.append(caller.function)
        near = callers
    return False


def layer_code(analyser: Analyser, function: Function) -> bool:
    """Whether the function is a module's forward or nested in one: its loops run over layers, heads or time steps."""
    around: Function | None = function
    while around is not None:
        if around.cls is not None and around.name in ("forward", "__call__") and analyser.program.is_module(around.cls):
            return True
        around = around.enclosing
    return False
