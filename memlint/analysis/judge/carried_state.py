"""States that a model, or its caller, keeps from one model call to the next, and that nothing detaches.

Training code resets or detaches such a state before each backward, which would raise otherwise. An evaluation raises
nothing: without a guard, the state's graph grows by one forward with each iteration.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from memlint.analysis.demand.used_up_graphs import used_up
from memlint.analysis.domain.events import Step
from memlint.analysis.domain.periods import ends_soon
from memlint.analysis.domain.state import ON
from memlint.analysis.domain.summary.effects import CallRecord, LoopState, Store
from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.domain.values import Path
from memlint.analysis.index.definitions import functions_of
from memlint.analysis.index.program import Class, Function
from memlint.analysis.index.roles_by_name import is_test
from memlint.analysis.judge.judged_runs import of_layers
from memlint.analysis.syntax.syntax import call_at, calls, dotted, parts, walk_statements
from memlint.ir import nodes as ir

if TYPE_CHECKING:
    from memlint.analysis.facts.analyser import Analyser


def carried_on(analyser: Analyser, summary: Summary, name: str) -> Step | None:
    """A trace step to an evaluation loop that calls the forward of ``summary`` and never resets ``name``, an attribute
    that the forward computes from its previous value. None if there is no such loop."""
    cls = summary.function.cls
    if cls is None:
        return None
    setters = _setters(analyser, cls, name, summary.function.name)
    first, *others = [
        caller.site(record.at)
        for caller, record in analyser.facts.calls_of(summary.function)
        if record.counts and record.loops and _carries(analyser, caller, record, name, setters)
    ] or (None,)
    if first is None:
        return None
    return Step(first, f"runs in each iteration of a loop that never resets `{name}`", decides=tuple(others))


def is_carried_alone(analyser: Analyser, summary: Summary, store: Store) -> bool:
    """Whether only the state keeps the graphs of all calls: a method of an object that is no module runs a model on the
    state that its last call stored, and all other outputs are used without their graph (an agent that acts and keeps
    ``self.hidden``). Nothing else resets the state, and no reader needs its graph."""
    function, place = summary.function, store.place
    name = state_of(summary, store)
    if not name or function.cls is None or function.name == "__init__" or analyser.program.is_module(function.cls):
        return False
    marks = summary.graphs.models_in(store.value.src)
    if not marks or place not in summary.graphs.closure(store.value.src):
        return False
    return (
        used_up(analyser, summary, marks, apart=place)
        and _read_without_graph(analyser, function, name)
        and not _is_reset_elsewhere(analyser, function, name)
    )


def state_of(summary: Summary, store: Store) -> str:
    """The attribute of ``self`` that a method computes from its own previous value; "" if there is none."""
    own = f"p:{summary.function.own_name}"
    place = store.place
    if store.loop is not None or store.how != "call" or not isinstance(place, Path) or place.root != own:
        return ""
    return place.steps[0][1:] if len(place.steps) == 1 else ""


def _is_reset_elsewhere(analyser: Analyser, function: Function, name: str) -> bool:
    """Whether another method, or code outside the object, resets the attribute: ``agent.hidden = None``."""
    assert function.cls is not None
    order, _ = analyser.program.ancestors(function.cls)
    if any(
        name in method.names and method.name not in ("__init__", function.name) and _stores(method.body, name)
        for item in order
        for method in item.methods.values()
    ):
        return True
    return any(
        _stores(one.body, name, of_others=True)
        for key in analyser.program.words.files(name)
        for one in functions_of(analyser.program.module(key))
    )


def _read_without_graph(analyser: Analyser, function: Function, name: str) -> bool:
    """Whether all other methods of the class, and of its subclasses, read the state only detached."""
    assert function.cls is not None
    order, _ = analyser.program.ancestors(function.cls)
    others = [method for item in order for method in item.methods.values() if method.name != function.name]
    below = [method for item in analyser.program.below(function.cls) for method in item.methods.values()]
    return not any(
        name in method.names and not _only_cuts(method.body, name)
        for method in (*others, *below)
        if method.name != "__init__"
    )


def _only_cuts(body: tuple[ir.Stmt, ...], name: str) -> bool:
    """Whether each mention of an attribute is followed by something without a graph: ``self.hidden.detach()``."""
    attributes = [part for part in parts(body) if isinstance(part, ir.Attr)]
    cut = [part for part in attributes if isinstance(part.value, ir.Attr) and part.value.name == name]
    mentioned = sum(part.name == name for part in attributes)
    return mentioned == len(cut) and all(part.name in _CUTS for part in cut)


#: attributes of a tensor that do not carry its graph
_CUTS = frozenset({"detach", "data", "shape", "size", "device", "dtype", "dim", "ndim", "numel"})


def _carries(analyser: Analyser, caller: Summary, record: CallRecord, name: str, setters: frozenset[str]) -> bool:
    grad = analyser.facts.modes.of_call(caller, record)
    held = caller.notes.rounds.get(record.loops[-1])
    if grad != ON or held is None or caller.cut_short or is_test(caller.function):
        return False
    if of_layers(analyser, caller.function) or caller.notes.blind_backward or caller.notes.gradients:
        return False
    if not _many_rounds(held) or any(held.id in backward.loops for backward in caller.backwards):
        return False
    run = call_at(held.body, record.at)
    return run is not None and not _may_reset(held, run, name, setters)


def _many_rounds(held: LoopState) -> bool:
    return held.counts and not held.over_objects and not ends_soon(held) and held.loop.every == "iteration"


def _may_reset(held: LoopState, run: ir.Call, name: str, setters: frozenset[str]) -> bool:
    """Whether something in the loop may assign the state a new value, or may replace the module."""
    module = dotted(run.func.value if isinstance(run.func, ir.Attr) else run.func)
    if not module or module.partition(".")[0] in held.bound:
        return True
    for statement in walk_statements(held.body, into_definitions=False):
        targets = statement.targets if isinstance(statement, ir.Assign | ir.Delete) else ()
        if any(isinstance(part, ir.Attr) and part.name == name for target in targets for part in _members(target)):
            return True
    for call in calls(held.body):
        if call is run:
            continue
        if isinstance(call.func, ir.Attr) and call.func.name in setters:
            return True
        if any(dotted(given) == module for given in call.passed):
            return True  # the callee may reset the state
    return False


def _members(target: ir.Expr) -> tuple[ir.Expr, ...]:
    return target.elements if isinstance(target, ir.Display) else (target,)


def _setters(analyser: Analyser, cls: Class, name: str, forward: str) -> frozenset[str]:
    """The methods of a class, apart from ``__init__`` and ``forward``, that assign the attribute, directly or through
    up to two levels of other methods."""
    order, _ = analyser.program.ancestors(cls)
    methods = [method for item in order for method in item.methods.values() if method.name not in ("__init__", forward)]
    found = {method.name for method in methods if name in method.names and _stores(method.body, name)}
    for _ in range(2):
        found |= {method.name for method in methods if not found.isdisjoint(method.names)}
    return frozenset(found)


def _stores(body: tuple[ir.Stmt, ...], name: str, *, of_others: bool = False) -> bool:
    """Whether a body assigns or deletes an attribute of this name. ``of_others``: of any object but ``self``."""
    return any(
        isinstance(part, ir.Attr) and part.name == name and not (of_others and dotted(part.value) == "self")
        for statement in walk_statements(body)
        if isinstance(statement, ir.Assign | ir.Delete)
        for target in statement.targets
        for part in _members(target)
    )
