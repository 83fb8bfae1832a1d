"""Evidence outside the filling loop that a place is bounded, or that its graph is needed: it lowers the confidence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memlint.analysis.demand.needed_later import graph_needed_later
from memlint.analysis.domain.events import Value
from memlint.analysis.domain.periods import is_periodic
from memlint.analysis.domain.summary.effects import Store
from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.domain.values import Path, Sources
from memlint.analysis.facts.hooks import FIRST
from memlint.analysis.facts.same_object import holder
from memlint.analysis.index.definitions import functions_of
from memlint.analysis.index.function import Function
from memlint.analysis.judge.described import self_name
from memlint.analysis.syntax.bindings import mentions, names_bound_by, names_read, targets
from memlint.analysis.syntax.memo import kept
from memlint.analysis.syntax.syntax import (
    calls,
    calls_named,
    dotted,
    is_name,
    last_name,
    parts_of,
    walk_expression,
    walk_statements,
)
from memlint.analysis.transfer.held_values import tensors_within
from memlint.analysis.transfer.stores.class_places import TAKING
from memlint.analysis.transfer.stores.collected import ends_in_picture
from memlint.ir import nodes as ir
from memlint.patterns import lazy_pattern

if TYPE_CHECKING:
    from memlint.analysis.facts.analyser import Analyser


#: modules that take layers, or lists of them
_HOLDERS = frozenset({"Sequential", "ModuleList", "ModuleDict"})


def may_be_bounded(analyser: Analyser, summary: Summary, store: Store, value: Value) -> bool:
    """Whether code outside the function may bound the place, or may need the graph that it keeps."""
    return (
        _emptied_by_others(analyser, summary, store)
        or _shares_a_needed_graph(analyser, summary, store)
        or (value.freed == "some" and _backward_flag_is_set_by_call(summary, store))
        or ends_in_picture(summary, store)
    )


def holds_layers(summary: Summary, store: Store) -> bool:
    """Whether the function passes the collected values to a module container: ``nn.Sequential(*layers)``."""
    return store.local and any(
        mentions(arg, store.place_text) for call in calls_named(summary.function.body, _HOLDERS) for arg in call.args
    )


# -------------------------------------------------------------------------------------- emptied elsewhere


def _emptied_by_others(analyser: Analyser, summary: Summary, store: Store) -> bool:
    """Whether each call of the function empties the place before it fills it, or other code empties an attribute of
    that name, of any object, as often as the store runs; for what each request fills, at any time."""
    if not isinstance(store.place, Path) or store.cleared:
        return False
    if store.loop is None and (store.place in summary.notes.cleared or is_drained(analyser, summary, store)):
        return True
    name = next((step for step in reversed(store.place.steps) if step.startswith(".")), None)
    if name is None:
        return False
    own = store.place.steps == (name,) and store.place.root == f"p:{self_name(summary.function)}"
    steps = store.place.steps
    of = holder(analyser, summary.function, Path(store.place.root, steps[: steps.index(name) + 1]))
    if own and analyser.facts.attributes.is_emptied_through(name, of):
        return True
    if store.loop is None:
        attributes = analyser.facts.attributes
        followed = summary.function if not store.lifted else None
        return attributes.is_emptied_each_round(name, of, followed) and (
            not own or attributes.is_reset(summary.function, name[1:])
        )
    if own:
        return False  # the analysis follows the object's own methods
    called = {dotted(call.func).rsplit(".", 1)[-1] for call in calls(store.loop.body)}
    member = store.place.steps[-1]
    return any(
        (other := analyser.summary(method)) is not None
        and any(
            name in path.steps and (path not in other.notes.members_set or path.steps[-1] == member)
            for path in other.notes.cleared
        )
        for item in sorted(called)
        for method in analyser.methods_named(item, summary.function)
        if method.key != summary.function.key
    )


# -------------------------------------------------------------------------------------- needed by others


def is_drained(analyser: Analyser, summary: Summary, store: Store) -> bool:
    """Whether other code takes members out of a place that each request fills."""
    return summary.answers and is_taken_elsewhere(analyser, summary, store)


def is_taken_elsewhere(analyser: Analyser, summary: Summary, store: Store) -> bool:
    """Whether other code takes members out of a place, or replaces it: a worker that serves a queue, another request.
    Code that makes the object does not count."""
    place = store.place
    if not isinstance(place, Path):
        return False
    attribute = next((step[1:] for step in reversed(place.steps) if step.startswith(".")), "")
    name = attribute or store.place_text
    home = place.root.split(":")[1] if place.root.startswith("g:") else summary.function.module.key
    for key in analyser.program.words.files(name):
        module = analyser.program.module(key)
        # another file names a global by its module (`server.seen`), unless it imports it
        qualified = attribute != "" or (key != home and all(one.binds != name for one in module.index.imports))
        for function in functions_of(module):
            if function.node is None or (attribute and function.name in FIRST):
                continue
            own = function is summary.function
            if any(
                _takes_from(function, statement, name, attribute=qualified)
                for statement in walk_statements(function.body, into_definitions=False)
                if not own or (store.kind != "cat" and statement.at != store.site.at)
            ):
                return True
    return False


#: methods that take members out of a container or a queue
_TAKES = TAKING | {"get_nowait"}


def _takes_from(function: Function, statement: ir.Stmt, name: str, *, attribute: bool) -> bool:
    """Whether a statement empties, shortens or replaces a global, or an attribute, of that name."""
    changed = [*targets(statement), *(statement.targets if isinstance(statement, ir.Delete) else ())]
    changed += [one for each in changed if isinstance(each, ir.Display) for one in each.elements]
    changed += [
        call.func.value
        for call in parts_of(statement)
        if isinstance(call, ir.Call) and isinstance(call.func, ir.Attr) and call.func.name in _TAKES
    ]
    for one in changed:
        while isinstance(one, ir.Subscript):
            one = one.value
        named = last_name(one) == name and isinstance(one, ir.Attr) == attribute
        if named and (attribute or name not in function.locals):
            return True
    return False


def _shares_a_needed_graph(analyser: Analyser, summary: Summary, store: Store) -> bool:
    """Whether another place keeps the graph of the same model calls until a later backward needs it. False if the
    function runs backward in the loop itself, or in an outer loop that a collecting list outlives."""
    models = _models(summary, store)
    rounds = {store.loop.id} if store.loop is not None else set()
    if rounds and store.local and store.kind == "retain":
        rounds |= {loop for loop in store.loops if loop not in store.made}
    trains = any(not rounds.isdisjoint(backward.loops) for backward in summary.backwards)
    return (
        bool(models)
        and not trains
        and any(
            other is not store
            and other.loop is store.loop
            and models <= _models(summary, other)
            and other.freed not in ("yes", "some")
            and graph_needed_later(analyser, summary, other)
            for other in summary.stores.values()
        )
    )


def _models(summary: Summary, store: Store) -> Sources:
    return summary.graphs.models_in(store.entering.src)


def _backward_flag_is_set_by_call(summary: Summary, store: Store) -> bool:
    """Whether the backward runs under a flag that the loop sets from a call that takes the stored value: that call may
    have run a backward of its own."""
    if store.loop is None:
        return False
    flags = {
        part.id
        for backward in summary.backwards
        if store.loop.id in backward.loops
        for test in backward.tests
        for part in walk_expression(test)
        if isinstance(part, ir.Name) and part.id in store.loop.bound
    }
    root = store.text.split(".", 1)[0].split("[", 1)[0]
    return any(
        isinstance(statement, ir.Assign | ir.AugAssign)
        and any(isinstance(item, ir.Name) and item.id in flags for item in targets(statement))
        and any(
            isinstance(part, ir.Call) and any(mentions(arg, root) for arg in part.args)
            for part in walk_expression(statement.value)
        )
        for statement in walk_statements(store.loop.body)
    )


def becomes_attribute(summary: Summary, store: Store) -> bool:
    """Whether an attribute or a global holds the container at the end: its readers may need the graph."""
    if summary.exit is None or isinstance(store.place, Path):
        return False
    return any(
        store.place in value.objs
        or ("elem", store.place) in summary.graphs.closure(tensors_within(summary, summary.exit, value).src)
        for value in summary.exit.sym.values()
    )


# -------------------------------------------------------------------------------------- begun anew, a handful


def begun_by_inner_loop(store: Store) -> bool:
    """Whether the first iteration of a loop inside the store's loop assigns the name a new value: ``if i == 0: total =
    part``, or ``total = part if i == 0 else total + part``."""
    place = store.place
    if store.kind == "retain" or store.loop is None or isinstance(place, Path) or place[0] != "var":
        return False
    if store.kind == "cat":
        return _always_assigned(store.loop.body, place[1])
    for inner in for_loops(store.loop.body):
        names = names_read(inner.target)
        for statement in walk_statements(inner.body, into_definitions=False):
            if isinstance(statement, ir.If) and _is_first(statement.test, names, inner.body):
                return any(_assigns_anew(first, place[1]) for first in statement.body)
    return False


@kept
def for_loops(body: tuple[ir.Stmt, ...]) -> tuple[ir.For, ...]:
    """The for loops of a body, nested definitions left out."""
    return tuple([one for one in walk_statements(body, into_definitions=False) if isinstance(one, ir.For)])


def ends_with_members(summary: Summary, store: Store) -> bool:
    """Whether the variable outlives only a loop over a handful of models, agents or heads, around which it is assigned
    a new value: it grows by one element for each of them."""
    if store.loop is None or not store.loop.over_objects or not isinstance(store.place, tuple):
        return False
    if store.place[0] != "var" or store.loop.id not in store.loops:
        return False
    around = store.loops[: store.loops.index(store.loop.id)]
    outer = [loop for one in around if (loop := summary.notes.rounds.get(one)) is not None]
    return any(
        isinstance(statement, ir.Assign) and store.place[1] in names_bound_by(statement)
        for loop in outer
        for statement in loop.body
    )


def _always_assigned(body: tuple[ir.Stmt, ...], name: str) -> bool:
    """Whether a loop that each iteration reaches assigns the name unconditionally in its own first iteration."""
    for inner in body:
        if isinstance(inner, ir.With) and _always_assigned(inner.body, name):
            return True
        if isinstance(inner, ir.If) and _always_assigned(inner.body, name) and _always_assigned(inner.orelse, name):
            return True
        if not isinstance(inner, ir.For):
            continue
        counters = names_read(inner.target)
        for statement in inner.body:
            if isinstance(statement, ir.If) and _is_first(statement.test, counters, inner.body):
                if any(_assigns_anew(first, name) for first in statement.body):
                    return True
            elif isinstance(statement, ir.Assign) and isinstance(statement.value, ir.IfExp):
                named = any(is_name(target, name) for target in statement.targets)
                begins = not mentions(statement.value.body, name)
                if named and begins and _is_first(statement.value.test, counters, inner.body):
                    return True
    return False


def reset_after_backward(store: Store) -> bool:
    """Whether each iteration, or one in every few, runs backward on the sum itself and then assigns it a new value:
    ``sum.backward(); sum = 0``. Until then the backward needs the graph."""
    place = store.place
    if store.kind != "carry" or store.loop is None or isinstance(place, Path) or place[0] != "var":
        return False
    name = place[1]
    return any(
        name in _run_backward_on(block) and _resets_after_backward(block, name) for block in _periodic(store.loop.body)
    )


@kept
def _periodic(body: tuple[ir.Stmt, ...]) -> tuple[tuple[ir.Stmt, ...], ...]:
    """A loop's body, and the blocks in it that run once in so many iterations."""
    return (body, *(one.body for one in body if isinstance(one, ir.If) and is_periodic(one.test)))


@kept
def _run_backward_on(body: tuple[ir.Stmt, ...]) -> frozenset[str]:
    """The places, as source text, on which the statements of a block call ``backward()``."""
    calls = (dotted(one.value.func) for one in body if isinstance(one, ir.ExprStmt) and isinstance(one.value, ir.Call))
    return frozenset(name.removesuffix(".backward") for name in calls if name.endswith(".backward"))


def _resets_after_backward(body: tuple[ir.Stmt, ...], name: str) -> bool:
    ran = False
    for statement in body:
        call = statement.value if isinstance(statement, ir.ExprStmt) else None
        if isinstance(call, ir.Call) and dotted(call.func) == f"{name}.backward":
            ran = True
        elif ran and isinstance(statement, ir.Assign) and name in names_bound_by(statement):
            return not mentions(statement.value, name)
    return False


def once_in_a_loop(store: Store) -> bool:
    """Whether a test lets the store run in a single iteration: ``if i == 1:``, or ``if step == 0:`` on a counter of the
    callers."""
    counters = store.loop.counters if store.loop is not None else frozenset(_counted(store.tests))
    return any(
        isinstance(test, ir.Compare)
        and test.ops == ("==",)
        and isinstance(test.left, ir.Name)
        and test.left.id in counters
        and isinstance(test.rights[0], ir.Const)
        for test in store.tests
    )


#: names of iteration counters; an epoch counter does not qualify, as an epoch has many iterations
_COUNTS = lazy_pattern(r"(^|_)(n_?)?(iter|iters|iteration|iter_num|step|batch|batch_idx|idx)(_(num|idx|i|id|count))?$")


def _counted(tests: tuple[ir.Expr, ...]) -> list[str]:
    names = [test.left.id for test in tests if isinstance(test, ir.Compare) and isinstance(test.left, ir.Name)]
    return [name for name in names if _COUNTS.search(name.lower())]


def _is_first(test: ir.Expr, counters: frozenset[str], body: tuple[ir.Stmt, ...]) -> bool:
    """Whether a test holds in the first iteration alone: ``i == 0``; ``i == 1`` after ``i += 1`` in the loop."""
    if not isinstance(test, ir.Compare) or test.ops != ("==",) or not isinstance(test.left, ir.Name):
        return False
    name, first = test.left.id, test.rights[0].value if isinstance(test.rights[0], ir.Const) else None
    counts = [one for one in body if isinstance(one, ir.AugAssign) and dotted(one.target) == name and one.at < test.at]
    return name in counters and first == len(counts) and not isinstance(first, bool)


def _assigns_anew(statement: ir.Stmt, name: str) -> bool:
    return (
        isinstance(statement, ir.Assign) and name in names_bound_by(statement) and not mentions(statement.value, name)
    )


def of_one_update(summary: Summary, store: Store) -> bool:
    """Whether a loop runs backward in each iteration and never steps the optimizer: its iterations are parts of one
    batch (views, chunks), or the micro-batches of one step."""
    if store.loop is None or store.loop.loop.over != "unknown":
        return False
    return any(store.loop.id in backward.loops for backward in summary.backwards) and not any(
        isinstance(call.func, ir.Attr) and call.func.name in ("step", "zero_grad") for call in calls(store.loop.body)
    )


#: hooks that frameworks call once
_ONCE = frozenset({"configure_optimizers", "on_fit_start", "prepare_data", "setup"})


def emptied_by(analyser: Analyser, summary: Summary, store: Store) -> str:
    """The name of a method that empties the attribute which this function fills, and that a framework or the project
    calls; "" if none is found."""
    place, function = store.place, summary.function
    if not isinstance(place, Path) or place.root != f"p:{self_name(function)}" or len(place.steps) != 1:
        return ""
    for method in analyser.program.methods(function.cls):
        other = analyser.summary(method) if method.name not in _ONCE | {"__init__", function.name} else None
        if other is None:
            continue
        hooked = other.hook is not None and other.hook.every != "run"
        if not hooked and not analyser.facts.attributes.is_called(method.name):
            continue
        if Path(f"p:{self_name(method)}", place.steps) in other.notes.cleared or _empties_by_name(method.body):
            return method.name
    return ""


@kept
def _empties_by_name(body: tuple[ir.Stmt, ...]) -> bool:
    """Whether a body empties an attribute with a computed name: ``getattr(self, f"{phase}_outputs").clear()``."""
    named = (call.func.value for call in calls(body) if isinstance(call.func, ir.Attr) and call.func.name == "clear")
    return any(
        isinstance(one, ir.Call)
        and dotted(one.func) == "getattr"
        and len(one.args) > 1
        and not isinstance(one.args[1], ir.Const)
        for one in named
    )
