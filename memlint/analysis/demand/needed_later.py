"""Demand for a graph: whether a later backward, or unresolved code, needs the graph of what a place keeps."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING

from memlint.analysis.demand.used_up_graphs import blindly_reached
from memlint.analysis.domain.summary.effects import Backward, CallRecord, Store
from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.domain.values import EMPTY, Path, Source, Sources, V
from memlint.analysis.facts.calls_by_name import has_known_callers
from memlint.analysis.syntax.bindings import assigned_names
from memlint.analysis.syntax.syntax import calls, last_name, walk_expression, walk_statements
from memlint.analysis.transfer.held_values import places_with, tensors_within
from memlint.analysis.transfer.stores.stores import marks_of
from memlint.ir import nodes as ir

if TYPE_CHECKING:
    from memlint.analysis.facts.analyser import Analyser


#: the expressions that tests of flags consist of: ``training and not validate``, ``optimizer is not None``
_OF_FLAGS = (ir.Name, ir.Const, ir.Unary, ir.BoolOp, ir.Compare)


def kept_each_round(summary: Summary, store: Store) -> Backward | None:
    """The backward of each round that runs through the graph of all rounds before, by a state that is computed from its
    previous value, and keeps that graph (``retain_graph=True``); None if there is none, or another backward frees the
    graph in the same round."""
    if store.how != "call" or store.loop is None or store.freed not in (None, "no"):
        return None
    inside = store.loop.id
    before = {item for item in marks_of(store) if isinstance(item, tuple) and item[:2] == ("prev", inside)}
    return next(
        (one for one in summary.backwards if one.keeps and inside in one.loops and not before.isdisjoint(one.reached)),
        None,
    )


def graph_needed_later(analyser: Analyser, summary: Summary, store: Store) -> bool:
    """Whether the graph that the place keeps reaches a backward, or escapes to unresolved code."""
    if (summary.notes.keeps_gradients or summary.notes.unknown_gradients) and store.freed != "yes":
        return True
    marks = marks_of(store)
    held = _in_records(summary, store)
    inside = store.loop.id if store.loop is not None else None
    # what is emptied behind the backward ends no iteration there, so that only the others tell
    of_some = store.freed == "some" or (store.freed == "no" and store.kind == "retain" and bool(store.cleared))
    for backward in summary.backwards:
        # a backward of each iteration frees what it needs; one of only some iterations (accumulation) needs the rest
        if (marks | held) & backward.reached and (
            inside not in backward.loops or (of_some and _is_for_several(summary, store, backward))
        ):
            return True
    if kept_each_round(summary, store) is not None:
        # what the backward of each round needs of the rounds before is the growth itself
        return isinstance(store.place, Path) and any(
            marks & one.reached for other in analyser.general_summaries() for one in other.backwards if not one.keeps
        )
    if store.freed == "some" and marks & summary.notes.returned and _saved_by_callers(analyser, summary):
        return True
    if store.freed in ("yes", "some") or store.dead or of_evaluation(summary, store.entering):
        return False
    if isinstance(store.place, Path):
        return _needed_elsewhere(analyser, summary, store) or _used_in_needed(analyser, summary, store)
    if marks & summary.escaped or _is_in_loss_attribute(analyser, summary, marks):
        return True
    if marks & summary.notes.returned:
        return not dropped_by_callers(analyser, summary)
    # the returned value may have passed through all iterations without a mark (in the parts of a state)
    known = _made_by_what_is_returned(summary, store) and bool(analyser.facts.calls_of(summary.function))
    return known and not dropped_by_callers(analyser, summary)


def _is_for_several(summary: Summary, store: Store, backward: Backward) -> bool:
    """Whether a backward inside a loop may go through a sum over several iterations.

    A backward in each iteration does not: the second one would reach graphs that the first has freed, and raise. If a
    flag decides for all iterations whether the backward runs, the runs without it (evaluations) need no graph
    either.
    """
    if store.kind != "carry" or store.cleared or store.loop is None:
        return True
    if summary.calls_at(backward.site.at):
        return True  # a helper may keep the graph
    body = store.loop.body
    if any(word.name in ("retain_graph", "create_graph") for call in calls(body) for word in call.keywords):
        return True
    bound = assigned_names(body)[0] | store.loop.targets
    inside = [test for test in backward.tests if test.at >= body[0].at]
    written = {path.steps[-1] for path in summary.exit.sym if path.steps} if summary.exit is not None else set()
    if not all(
        isinstance(part, _OF_FLAGS) or (isinstance(part, ir.Attr) and f".{part.name}" not in written)
        for test in inside
        for part in walk_expression(test)
    ):
        return True
    if not bound.isdisjoint(part.id for test in inside for part in walk_expression(test) if isinstance(part, ir.Name)):
        return True
    leaves = (one for one in walk_statements(body, into_definitions=False) if one.at > backward.site.at)
    return any(isinstance(one, ir.Return) or (isinstance(one, ir.Jump) and one.kind == "break") for one in leaves)


def _in_records(summary: Summary, store: Store) -> Sources:
    """The graphs in a stored record, whose parts are read without a mark of the place: ``memory.append({"log_prob":
    log_prob, "reward": reward})``. Empty for a value that is no record."""
    kept = store.value.src if store.record and store.freed != "yes" else frozenset()
    return frozenset(item for item in kept if item in summary.graphs.nodes)


def _made_by_what_is_returned(summary: Summary, store: Store) -> bool:
    """Whether the models that recorded the kept graph also recorded the returned value, whose graph may then contain
    it."""
    if store.kind != "retain":
        return False
    models = summary.graphs.models_in(store.entering.src)
    return bool(models) and models <= summary.notes.returned


def _is_in_loss_attribute(analyser: Analyser, summary: Summary, marks: AbstractSet[Source]) -> bool:
    """Whether the graph becomes a part of an attribute that is a loss, by a backward elsewhere or by its name:
    ``strategy.loss += penalty``."""
    return summary.exit is not None and any(
        isinstance(path, Path)
        and path.steps
        and (analyser.facts.in_backward(path.steps[-1:]) or path.steps[-1] in _LOSSES)
        and marks & summary.graphs.closure(value.src)
        for path, value in summary.exit.sym.items()
    )


#: classes that define their own backward
_FUNCTIONS = frozenset({"torch.autograd.Function", "torch.autograd.function.Function"})
#: attributes that hold a training loss; ``running_loss`` and the like are sums for a log
_LOSSES = frozenset({".loss", ".total_loss", ".reg_loss", ".aux_loss"})


def dropped_by_callers(analyser: Analyser, summary: Summary) -> bool:
    """Whether every known caller uses the result without its graph, or the function only evaluates. False if no caller
    is known."""
    evaluated = summary.notes.evaluations
    if evaluated and all(run.node in evaluated for run in summary.runs.values()):
        return True  # a network that is trained beside one in eval mode is none of the evaluation
    records = analyser.facts.calls_of(summary.function)
    if not records:
        return False
    for caller, record in records:
        sources = _given_to(caller, record)
        leaving = caller.escaped | caller.left - caller.notes.logged | caller.notes.returned
        if blindly_reached(caller, sources) or sources & leaving:
            return False
        # a value detached in place has lost its graph by now, but a backward may have run before that
        nodes = caller.graphs.nodes
        cut = [item for item in caller.notes.cut_off if item in nodes and nodes[item].at == record.at]
        sources = sources.union(cut)
        if any(sources & reached for reached, *_ in caller.backwards):
            return False
    return True


def _saved_by_callers(analyser: Analyser, summary: Summary) -> bool:
    """Whether a caller is the forward of an autograd function, which saves the result for its own backward."""
    for caller, record in analyser.facts.calls_of(summary.function):
        cls = caller.function.cls
        if cls is None or caller.exit is None or caller.function.name != "forward":
            continue
        if not analyser.program.ancestors(cls)[1] & _FUNCTIONS:
            continue
        if _given_to(caller, record) & (caller.escaped | caller.left):
            return True
    return False


def _given_to(caller: Summary, record: CallRecord) -> Sources:
    """The graph sources of the value that a call returns to its caller."""
    inner = tensors_within(caller, caller.exit, record.result).src if caller.exit is not None else EMPTY
    return record.result.src | inner


def _needed_elsewhere(analyser: Analyser, summary: Summary, store: Store) -> bool:
    """Whether some function of the project passes this attribute or global into a backward."""
    place = store.place
    assert isinstance(place, Path)
    marks = marks_of(store)
    if marks & summary.escaped and store.kind == "retain":
        return True
    name = next((step for step in reversed(place.steps) if step.startswith(".")), None)
    if name is not None and name in analyser.facts.attributes_in_backward:
        return True
    return any(marks & reached for other in analyser.general_summaries() for reached, *_ in other.backwards)


def _used_in_needed(analyser: Analyser, summary: Summary, store: Store) -> bool:
    """Whether a value computed from a carried state is kept for a backward elsewhere (a rollout)."""
    if store.kind != "carry":
        return False
    incoming = store.entering.src
    marks = marks_of(store) | {item for item in incoming if item in summary.graphs.nodes}
    return any(
        other.kind == "retain"
        and isinstance(other.place, Path)
        and marks & summary.graphs.closure(other.value.src)
        and _needed_elsewhere(analyser, summary, other)
        for other in summary.stores.values()
    )


def of_evaluation(summary: Summary, value: V) -> bool:
    """Whether the graph comes from an evaluation that records."""
    flagged = summary.notes.evaluations
    return any(item in flagged for item in summary.graphs.closure(value.src))


#: the most functions, callers of callers included, that may get the graphs
_MOST = 16
#: constructors of containers
_CONTAINERS = frozenset({"dict", "list", "set", "defaultdict", "OrderedDict", "deque"})


def stays_inside(analyser: Analyser, summary: Summary, marks: AbstractSet[Source]) -> bool:
    """Whether the function, and each caller to which it returns these graphs, keeps them to itself and runs no backward
    through them. False if callers are unknown, or too many."""
    todo, seen = [(summary, marks)], {summary.function.key}
    while todo:
        one, held = todo.pop()
        if not _keeps_to_itself(analyser, one, held):
            return False
        if held.isdisjoint(one.graphs.closure(one.notes.returned)):
            continue
        calls = analyser.facts.calls_of(one.function) if has_known_callers(analyser, one.function) else []
        if not calls:
            return False
        for caller, record in calls:
            if caller.exit is None or caller.function.key in seen or len(seen) >= _MOST:
                return False
            inner = tensors_within(caller, caller.exit, record.result).src
            if not inner:
                return False
            seen.add(caller.function.key)
            todo.append((caller, inner))
    return True


def _keeps_to_itself(analyser: Analyser, summary: Summary, marks: AbstractSet[Source]) -> bool:
    """Whether a function runs no backward, and neither hands these graphs on nor stores them where others read."""
    if summary.exit is None or summary.may_train or summary.yields:
        return False
    handed = marks & summary.graphs.closure(summary.escaped | summary.left)
    stored = places_with(summary, summary.exit, marks)
    return not handed and all(_is_own(analyser, place) for place in stored)


def _is_own(analyser: Analyser, place: Path) -> bool:
    """Whether a place is a variable of the program, with a value that its file makes: one of another module's may be
    read there."""
    if not place.root.startswith("g:"):
        return False
    key, name = place.root[2:].rsplit(":", 1)
    bindings = analyser.program.module(key).bindings.get(name, ())
    return all(isinstance(one, ir.Assign | ir.AnnAssign) and _is_new(one.value) for one in bindings)


def _is_new(value: ir.Expr | None) -> bool:
    if isinstance(value, ir.Call):
        return last_name(value.func) in _CONTAINERS
    return value is None or isinstance(value, ir.Display | ir.DictDisplay | ir.Comprehension | ir.Const)
