"""Facts that lower the confidence in a store's finding although its value has a graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memlint.analysis.demand.graph_origins import is_frozen_run
from memlint.analysis.demand.needed_later import dropped_by_callers, of_evaluation
from memlint.analysis.demand.used_up_graphs import blindly_reached, is_trial
from memlint.analysis.domain.events import Loop, Value
from memlint.analysis.domain.summary.effects import Store
from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.domain.values import EMPTY, Path, Source, V
from memlint.analysis.index.program import Function
from memlint.analysis.index.roles_by_name import is_evaluation_name
from memlint.analysis.judge.bounded_places import becomes_attribute
from memlint.analysis.judge.carried_state import carried_on
from memlint.analysis.judge.described import ambient_only
from memlint.analysis.judge.judged_runs import unguarded_module
from memlint.analysis.syntax.bindings import mentions
from memlint.analysis.syntax.expression_text import text
from memlint.analysis.syntax.memo import kept
from memlint.analysis.syntax.syntax import calls, dotted, expressions, walk_expression, walk_statements
from memlint.analysis.transfer.heap import is_stream, stream_of
from memlint.analysis.transfer.library.feeding import cuts_rows, gives_loaders, names_source
from memlint.analysis.transfer.stores.class_places import MADE
from memlint.analysis.transfer.stores.collected import is_moved_later
from memlint.analysis.transfer.stores.stores import marks_of
from memlint.finding import Confidence
from memlint.ir import nodes as ir
from memlint.patterns import lazy_pattern

if TYPE_CHECKING:
    from memlint.analysis.facts.analyser import Analyser


def confidence_unneeded(analyser: Analyser, summary: Summary, store: Store, value: Value) -> Confidence:
    """The confidence that nothing needs the graph that the place keeps.

    A backward that frees the graph, or a part of it, proves that nothing does; so does a model in eval mode, or a
    framework that runs the backward itself. Without such proof, code that neither trains nor evaluates may pass the
    graph on. The function's name is then the only evidence.
    """
    if value.freed in ("yes", "some") or store.dead:
        return "high"
    if of_evaluation(summary, store.entering):
        return "high"
    if summary.hook is not None:
        if not summary.hook.outputs:
            return "high"
        # evaluation engines pass outputs made under no_grad, but the same framework's training engines do not
        return "medium" if summary.hook.own else "low"
    if any(loops for _, loops, *_ in summary.backwards):
        return "high"
    if blindly_reached(summary, marks_of(store) | store.entering.src):
        return "low"  # that backward may need this very graph
    if unguarded_module(analyser, summary) and ambient_only(summary, store.entering.src):
        return "low"
    if is_evaluation_name(summary.function):
        return "medium"
    leaves = summary.escaped
    if store.local and marks_of(store) & summary.notes.returned and not dropped_by_callers(analyser, summary):
        leaves = leaves | summary.notes.returned
    # without a backward here, nothing can need a graph that stays in the function, or that its callers drop
    sure = (
        store.local
        and store.loop is not None
        and not _may_be_few(store.loop.loop)
        and not marks_of(store) & leaves
        and not _on_some_paths(summary, store, value)
        and not becomes_attribute(summary, store)
    )
    return "medium" if sure else "low"


def _may_be_few(loop: Loop) -> bool:
    """Whether no evidence shows that the loop has many iterations: it may run over a handful of tasks."""
    return loop.kind == "for" and loop.over == "unknown" and loop.trips is None and not loop.names_data


def goes_through_data(summary: Summary, store: Store) -> bool:
    """Whether a loop that collects tensors runs over batches of data, as far as names and types tell.

    Its iterations may otherwise be a handful of styles, languages or chunks, or parts of one training step.
    """
    if summary.function.name in _GIVE_A_BATCH:
        return False
    if store.loop is None or store.loop.loop.names_data:
        return True
    if of_one_step(summary, store):
        return False
    if store.loop.loop.batches and is_moved_later(summary, store):
        return True
    header, source = store.loop.loop.text.partition(" in ")[0], store.loop.loop.source
    if "range(" in source:
        named = cuts_rows(store.loop.counters, store.loop.body)
    else:
        named = "batch" in header or names_source(source)
    return named or not store.loop.loop.assumed


#: functions that assemble one batch
_GIVE_A_BATCH = frozenset({"__next__", "next", "__getitem__", "__getitems__", "collate", "collate_fn"})


def _on_some_paths(summary: Summary, store: Store, value: Value) -> bool:
    """Whether only some paths of a callee, which its arguments select, record the graph."""
    nodes = (summary.graphs.nodes.get(item) for item in summary.graphs.closure(store.entering.src))
    return value.attached == "some" and all(node.partial for node in nodes if node is not None and node.definite)


def would_raise(summary: Summary, store: Store, value: Value) -> bool:
    """Whether the next iteration's backward would raise if the state still had its graph, and no known layer computes
    the state. Since the program runs, the model detaches the state somewhere."""
    if store.kind != "carry" or value.freed != "yes":
        return False
    # a sum's value also holds what is added to it, which does not come from the state
    added = summary.graphs.closure(store.incoming.src) if store.how == "add" and store.incoming is not None else EMPTY
    in_output = summary.graphs.closure(summary.notes.returned) & (
        (store.value.src & summary.graphs.nodes.keys()) - added
    )
    if not summary.graphs.nodes_of(store.value.src) and store.place in summary.notes.returned:
        in_output |= store.value.src if _is_read_behind(summary, store) else EMPTY  # a function computed the state
    if store.loop is None and in_output and not summary.analyser.is_buffer(summary.function, store.place):
        return True  # the output depends on the state, so the next output's backward reaches this graph
    if isinstance(store.place, Path) and store.place.root.startswith(MADE) and store.loop is not None:
        inside = [backward for backward in summary.backwards if store.loop.id in backward.loops]
        if any(store.place in backward.reached for backward in inside):
            return True  # the same holds where the function makes the module and calls it
    if store.how != "call":
        return False
    nodes = (summary.graphs.nodes.get(item) for item in store.entering.src)
    return any(node is not None and (node.opaque or node.unknown or node.via) for node in nodes)


def _is_read_behind(summary: Summary, store: Store) -> bool:
    """Whether code behind a store reads the place, or calls a method of the object that does."""
    function = summary.function
    behind = [expr for one in walk_statements(function.body) if one.at > store.site.at for expr in expressions(one)]
    if any(mentions(expr, store.place_text) for expr in behind):
        return True
    attribute = store.place_text.removeprefix(f"{function.own_name}.")
    called = (
        summary.analyser.program.method(function.cls, part.func.name)
        for expr in behind
        for part in walk_expression(expr)
        if isinstance(part, ir.Call) and isinstance(part.func, ir.Attr)
        if text(part.func.value) == function.own_name
    )
    return any(
        mentions(expr, f"{method.own_name}.{attribute}")
        for method in called
        if method is not None
        for one in walk_statements(method.body)
        for expr in expressions(one)
    )


def is_trained_by(summary: Summary, store: Store, value: Value) -> bool:
    """Whether a backward of the same iteration goes through the sum itself and frees its graph. If the sum held the
    last iteration's graph, that backward would raise, so the program must reset the sum in some unresolved way."""
    if store.kind != "carry" or store.how != "add" or not store.local or store.loop is None or store.incoming is None:
        return False  # a module's state is reported even so
    own = {source for source in store.value.src - store.incoming.src if source in summary.graphs.nodes}
    return any(
        store.loop.id in backward.loops
        and own & backward.reached
        and _frees(summary, backward.site.at)
        and (value.freed == "yes" or all(test in store.tests for test in backward.tests))
        for backward in summary.backwards
    )


def _frees(summary: Summary, at: int) -> bool:
    """Whether the call at this ordinal is a plain ``total.backward()``, which keeps no graph."""
    return any(
        call.at == at and isinstance(call.func, ir.Attr) and not call.args and not call.keywords
        for call in calls(summary.function.body)
    )


def reset_elsewhere(analyser: Analyser, summary: Summary, store: Store) -> bool:
    """Whether other code resets a state of a module, at its own time: with each sequence, or each epoch."""
    if _owner_is_reset(summary, store):
        return True
    if store.kind == "carry" and _is_handed_on(summary, store):
        return True  # the function that gets the module may reset it
    if store.kind != "carry" or store.how not in ("add", "update") or store.loop is not None:
        return False
    attributes = [step for step in store.place.steps if step.startswith(".")] if isinstance(store.place, Path) else []
    return bool(attributes) and analyser.facts.attributes.is_begun(attributes[-1][1:])


#: names of methods that drop what other methods of their object have stored
_BEGINS_ANEW = lazy_pattern(r"_?(re_?set|clear|zero|empty|flush|re_?init|begin|start)(_|$)")


def _owner_is_reset(summary: Summary, store: Store) -> bool:
    """Whether the loop, or the function, calls a reset on the place's owner: ``self.meter.reset()``, with a meter of
    unknown class, beside ``self.meter.add(loss)``."""
    body = store.loop.body if store.loop is not None else summary.function.body
    return any(store.place_text.startswith(f"{place}.") for place in _reset_receivers(body))


@kept
def _reset_receivers(body: tuple[ir.Stmt, ...]) -> frozenset[str]:
    """The receivers, as source text, on which the statements of a block call a reset method."""
    calls = (statement.value for statement in body if isinstance(statement, ir.ExprStmt))
    return frozenset(
        text(call.func.value, 200)
        for call in calls
        if isinstance(call, ir.Call) and isinstance(call.func, ir.Attr) and _BEGINS_ANEW.match(call.func.name)
    )


def _is_handed_on(summary: Summary, store: Store) -> bool:
    """Whether the loop passes the module that holds the state, and that the function has made, to a call."""
    if not isinstance(store.place, Path) or not store.place.root.startswith(MADE) or store.loop is None:
        return False
    item = store.place.root.rpartition(":")[2]
    env = summary.exit.env if summary.exit is not None else {}
    names = {name for name, value in env.items() if item in map(str, value.store)}
    arguments = (one for call in calls(store.loop.body) for one in call.passed)
    return any(dotted(one) in names for one in arguments)


def may_sum_itself(analyser: Analyser, summary: Summary, store: Store) -> bool:
    """Whether the left side of ``+=`` may be an object whose class defines that operator: a meter."""
    if store.kind != "carry" or store.how != "add":
        return False
    files = {store.site.path, *(step.site.path for step in store.trace)}
    place = store.place[0] if isinstance(store.place, tuple) and not isinstance(store.place, Path) else None
    holder = summary.exit.heap.get(place) if summary.exit is not None else None
    return any(
        method.module.key in files
        and (
            holder is None or holder.cls is not method.cls
        )  # an attribute of the object that defines the operator is no such object
        for method in analyser.methods_named("__iadd__", summary.function)
    )


def held_already(summary: Summary, store: Store, incoming: V) -> bool:
    """Whether the value comes out of a container that lives as long: keeping it again keeps no more memory."""
    heap = summary.exit.heap if summary.exit is not None else {}
    if store.loop is not None and store.loop.loop.over == "unknown" and incoming.src:
        members = {item for item in store.loop.items if isinstance(item, Path) and item.steps[-1:] == ("[]",)}
        if incoming.src <= members:
            return True  # ``for loss in losses: total += loss``, of a list that a caller has filled
    if store.kind != "retain" or store.loop is None:
        return False
    held = {
        item
        for item in incoming.src
        if isinstance(item, tuple)
        and item[:1] == ("elem",)
        and item[1] != store.place
        and not is_stream(item[1])
        and (obj := heap.get(item[1])) is not None
        and store.loop.id not in obj.loops
    }
    # ``history.append((steps[0], loss))`` keeps the loss's graph anew
    return bool(held) and not summary.graphs.nodes_of(incoming.src - held)


def of_one_step(summary: Summary, store: Store) -> bool:
    """Whether a backward runs once in the lifetime of the place: the iterations of its loop are parts of one step."""
    if not store.local or store.loop is None or summary.function.node is None:
        return False
    outer = store.loops[: store.loops.index(store.loop.id)] if store.loop.id in store.loops else store.made
    if store.kind == "retain" and store.made != outer:
        return False
    if store.kind == "carry" and outer:
        reached = summary.graphs.closure(store.value.src)
        if any(("prev", outer[-1], mark) in reached for mark in _names_of(store)):
            return False
    with_it = [backward for backward in summary.backwards if not backward.excludes(store)]
    return any(backward.loops == outer for backward in with_it) and not any(
        store.loop.id in backward.loops for backward in with_it
    )


def in_trial(function: Function) -> bool:
    """Whether the function, or one around it, is a test or a trial, which runs once."""
    around: Function | None = function
    while around is not None:
        if is_trial(around):
            return True
        around = around.around
    return False


def adds_a_graph(summary: Summary, store: Store, incoming: V) -> bool:
    """Whether each iteration adds a new graph: inside the loop, a model or a parameter takes part."""
    if store.loop is None:
        return True
    reached = summary.graphs.closure(incoming.src)
    if any(isinstance(item, Path) and item != store.place for item in reached) and not any(
        item in summary.graphs.nodes and summary.graphs.nodes[item].definite for item in reached
    ):
        return True
    proved = {item for evidence in summary.graphs.evidence if evidence <= incoming.src for item in evidence}
    streamed = any(isinstance(item, tuple) and item[:1] == ("elem",) and is_stream(item[1]) for item in incoming.src)
    return any(
        (node := summary.graphs.nodes.get(item)) is not None
        and (node.definite or item in proved or is_frozen_run(summary, item))
        and (streamed or store.loop.id in node.loops or _is_streamed(summary, item))
        for item in reached
    )


def _is_streamed(summary: Summary, source: Source) -> bool:
    """Whether a call of a generator records the graph, a new one for each item."""
    return isinstance(source, tuple) and summary.exit is not None and stream_of(source[:3]) in summary.exit.heap


def once_a_batch(analyser: Analyser, summary: Summary, store: Store) -> bool:
    """Whether the place is created anew for each batch, here or by callers: it collects the parts of one batch."""
    if not store.local:
        return False
    return store.inner or any(record.each_batch for _, record in analyser.facts.calls_of(summary.function))


def is_moved_member(store: Store) -> bool:
    """Whether the loop moves the elements of a collection to the device on purpose: ``x.cuda()`` in ``for x in
    inputs``."""
    name, _, rest = store.text.partition(".")
    return store.loop is not None and name in store.loop.targets and rest.startswith(("cuda(", "to("))


def from_last_call(analyser: Analyser, summary: Summary, store: Store) -> bool:
    """Whether a forward computes the place from what its last call stored, and nothing resets the place between two
    calls, or at least not in some loop that only evaluates."""
    if store.kind != "carry":
        return True
    place = store.place
    if not isinstance(place, Path) or place not in summary.graphs.closure(store.value.src):
        return False
    if place in summary.notes.reset_by_parameter:
        return False
    if store.how != "call":
        return True
    attributes = [step for step in place.steps if step.startswith(".")]
    if len(attributes) != 1:
        return False
    name = attributes[0][1:]
    return (
        not analyser.facts.attributes.is_reset(summary.function, name)
        or carried_on(analyser, summary, name) is not None
    )


def rebuilt_each_batch(summary: Summary, store: Store) -> bool:
    """Whether an outer loop over batches creates the place anew: the inner loop then stores parts of one batch."""
    if store.loop is None or store.loop.loop.over == "loader" or store.loop.id not in store.loops:
        return False
    inner = store.loop.id
    trains = any(inner in loops for _, loops, *_ in summary.backwards)
    reached = summary.graphs.closure(store.value.src)
    for item in store.loops[: store.loops.index(inner)]:
        loop = summary.notes.rounds[item].loop if item in summary.notes.rounds else None
        if loop is None or loop.kind != "for" or loop.over not in (("loader",) if trains else ("loader", "unknown")):
            continue
        if gives_loaders(summary.notes.rounds[item].targets, summary.notes.rounds[item].body):
            continue
        if item in store.made or (
            store.kind == "carry" and not any(("prev", item, mark) in reached for mark in _names_of(store))
        ):
            return True
    return False


def _names_of(store: Store) -> tuple[Source, ...]:
    """The names that identify the place in the markers of previous iterations."""
    return tuple(mark[2] for mark in marks_of(store) if isinstance(mark, tuple) and mark and mark[0] == "prev")
