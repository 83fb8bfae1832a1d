"""States that a model, or its caller, keeps from one model call to the next, and that nothing detaches.

Training code resets or detaches such a state before each backward, which would raise otherwise. An evaluation raises
nothing: without a guard, the state's graph grows by one forward with each iteration.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from memlint.analysis.demand.used_up_graphs import used_up
from memlint.analysis.domain.bound_names import argument
from memlint.analysis.domain.events import Step
from memlint.analysis.domain.periods import ends_soon
from memlint.analysis.domain.state import ON
from memlint.analysis.domain.summary.effects import CallRecord, LoopState, Store
from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.domain.values import Path
from memlint.analysis.index.definitions import functions_of
from memlint.analysis.index.function import Function
from memlint.analysis.index.program import Class
from memlint.analysis.index.roles_by_name import is_test
from memlint.analysis.judge.judged_runs import of_layers
from memlint.analysis.syntax.bindings import assigned_names, mentions
from memlint.analysis.syntax.syntax import call_at, calls, dotted, last_name, loops_around, parts, walk_statements
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
    if any(
        name in method.names and method.name not in ("__init__", function.name) and _stores(method.body, name)
        for method in analyser.program.methods(function.cls)
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
    others = [method for method in analyser.program.methods(function.cls) if method.name != function.name]
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
    methods = [method for method in analyser.program.methods(cls) if method.name not in ("__init__", forward)]
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


#: how many callers up a step count is followed
MAX_DEPTH = 4
#: calls that show the progress of a loop
_SHOWS = frozenset({"tqdm", "trange", "track", "prange"})


def begun_at_first_step(analyser: Analyser, summary: Summary, store: Store) -> bool:
    """Whether the attribute is reset at the first step of a sequence, and each iteration of the store's loop goes
    through a whole sequence."""
    function = _function_of(analyser, store)
    name = store.place_text.rpartition(".")[2]
    if store.loop is None or function is None or function.cls is None or not name or not function.takes_self:
        return False
    counts = {param.name for param in function.params[1:]} - assigned_names(function.body)[0]
    return any(
        _counts_from_zero(analyser, function, statement.test.left.id, (summary.function, store.loop.id), 0)
        for statement in function.body
        if statement.at < store.site.at
        and isinstance(statement, ir.If)
        and isinstance(statement.test, ir.Compare)
        and statement.test.ops == ("==",)
        and isinstance(statement.test.left, ir.Name)
        and statement.test.left.id in counts
        and isinstance(zero := statement.test.rights[0], ir.Const)
        and zero.kind == "int"
        and zero.value == 0
        and _resets(function, statement.body, name)
    )


def _function_of(analyser: Analyser, store: Store) -> Function | None:
    """The function whose body holds a store; None if it is outside all functions."""
    module = analyser.program.module(store.site.path)
    module.build(store.site.unit)
    inside = module.by_place.get(store.site.unit, {})
    return inside[max(before)] if (before := [at for at in inside if at <= store.site.at]) else None


def _resets(function: Function, body: tuple[ir.Stmt, ...], name: str, deeper: bool = True) -> bool:
    """Whether a block of a method assigns the attribute a value that does not depend on the old one, directly or
    through another method of the class."""
    own = function.params[0].name
    for statement in body:
        if isinstance(statement, ir.Assign) and any(dotted(target) == f"{own}.{name}" for target in statement.targets):
            return not mentions(statement.value, f"{own}.{name}")
        call = statement.value if isinstance(statement, ir.ExprStmt) else None
        if deeper and isinstance(call, ir.Call) and isinstance(call.func, ir.Attr) and dotted(call.func.value) == own:
            method = function.cls.methods.get(call.func.name) if function.cls is not None else None
            if method is not None and method.takes_self and _resets(method, method.body, name, deeper=False):
                return True
    return False


def _counts_from_zero(
    analyser: Analyser, function: Function, param: str, outer: tuple[Function, object], depth: int
) -> bool:
    """Whether each known call passes for a parameter the constant 0, or the count from 0 of a loop other than
    ``outer``. False if no call is known."""
    calls = analyser.facts.calls_of(function)
    return (
        bool(calls)
        and depth < MAX_DEPTH
        and all(
            _passes_count(analyser, caller.function, function, record.at, param, outer, depth)
            for caller, record in calls
        )
    )


def _passes_count(
    analyser: Analyser,
    caller: Function,
    function: Function,
    at: int,
    param: str,
    outer: tuple[Function, object],
    depth: int,
) -> bool:
    call, names = call_at(caller.body, at), [each.name for each in function.params][1:]
    if call is None or any(isinstance(arg, ir.Starred) for arg in call.args):
        return False
    value = argument(call, names.index(param) if param in names else len(call.args), param)
    if isinstance(value, ir.Const):
        return value.kind == "int" and value.value == 0
    if not isinstance(value, ir.Name):
        return False
    for loop in loops_around(caller.body, at):
        if isinstance(loop, ir.For) and isinstance(loop.target, ir.Name) and loop.target.id == value.id:
            same = caller is outer[0] and outer[1] == ("loop", loop.at)
            return not same and _from_zero(loop.iter) and value.id not in assigned_names(loop.body)[0]
    passed = any(each.name == value.id for each in caller.params) and value.id not in assigned_names(caller.body)[0]
    return passed and caller.cls is not None and _counts_from_zero(analyser, caller, value.id, outer, depth + 1)


def _from_zero(iterated: ir.Expr) -> bool:
    """Whether a loop's iterable counts from 0: ``range(n)``, ``range(0, n, 2)``, with or without a progress bar."""
    if not isinstance(iterated, ir.Call) or (iterated.keywords and last_name(iterated.func) not in _SHOWS):
        return False
    if last_name(iterated.func) in _SHOWS - {"trange"} and iterated.args:
        return _from_zero(iterated.args[0])
    if dotted(iterated.func) not in ("range", "trange"):
        return False
    first = iterated.args[0] if len(iterated.args) > 1 else None
    return len(iterated.args) == 1 or (isinstance(first, ir.Const) and first.value == 0)
