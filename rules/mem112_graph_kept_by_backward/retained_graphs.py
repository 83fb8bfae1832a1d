"""``backward(retain_graph=True)`` after which no other backward uses that graph."""

from __future__ import annotations

from collections.abc import Iterator

from memlint.sdk import lazy_pattern
from memlint.sdk.project import Analyser, Class, Summary, captured, dropped_by_callers, is_test
from memlint.sdk.syntax import (
    call_at,
    calls,
    ir,
    is_false,
    is_true,
    mentions,
    names_bound_by,
    parts,
    parts_of,
    text,
    walk_statements,
)
from memlint.sdk.values import (
    MODULE,
    Backward,
    LoopState,
    Path,
    Source,
    excluded,
    places_with,
    tensors_within,
    variables_with,
)

from .brought_graphs import has_no_graph, is_called, is_given, is_kept, is_leaf, named
from .earlier_rounds import from_earlier
from .given_losses import given_for_nothing, united
from .model_state import Stateful, keeps_a_graph, may_be_stateful
from .rule import KeptGraph

#: names of a model's state between calls, and of code that manages it
_STATE = lazy_pattern(r"hidden|memor|detach|repackage|reset|temporal|carry|(^|_)states?($|_(?!dict))|cell_")
#: names of flags for mixed precision
_PRECISION = lazy_pattern(r"scal[ae]r|(^|[^a-z])amp($|[^a-z])|fp16|half|mixed|apex")
#: names of single parameters of a model
_PARAMETER = lazy_pattern(r"(p|param\w*|w|weights?|tensor|v|child|layer\w*)$")


def retained(analyser: Analyser, summary: Summary) -> Iterator[KeptGraph]:
    """The backwards of one function that keep a graph in vain."""
    if not summary.notes.retained or summary.cut_short or summary.exit is None:
        return
    if is_test(summary.function):
        return
    for at, (expr, left) in sorted(summary.notes.retained.items()):
        if any(other >= at for other in summary.notes.blind_at):
            continue  # a backward of an unknown loss follows
        own = [one for one in summary.backwards if one.site == summary.site(at)]
        given = _argument(expr)
        if not own or given is None:
            continue
        last = united(own)
        marks = _recorded(analyser, summary, last)
        if marks:
            sure = _for_nothing(analyser, summary, last, marks, left)
        else:
            sure = given_for_nothing(analyser, summary, last, left, _for_nothing_there)
        if sure is None:
            continue
        loop = summary.notes.rounds.get(last.loops[-1]) if last.loops else None
        yield KeptGraph(
            site=summary.site(at),
            function=summary.function.qual,
            certainty="high" if sure else "medium",
            sure=sure,
            kind="retain",
            text=text(expr),
            word=summary.site(given.at),
            alive=_alive(summary, loop, marks, expr),
            loop=loop.loop if loop is not None else None,
        )


def _for_nothing(
    analyser: Analyser, summary: Summary, last: Backward, marks: frozenset[Source], left: frozenset[Source]
) -> bool | None:
    """Whether surely no backward uses the operations that a backward keeps; None if one may."""
    if not _is_last(summary, last, marks) or _goes_on(analyser, summary, marks, left):
        return None
    sure = _is_sure(analyser, summary, last, marks)
    return None if sure is None or _has_leaves_before(analyser, summary, last) else sure


def _for_nothing_there(analyser: Analyser, caller: Summary, last: Backward) -> bool | None:
    """The same for a backward that a function runs for its caller, in the caller. (Whatever the caller stores, another
    function may differentiate.)"""
    marks = _recorded(analyser, caller, last)
    if not marks or places_with(caller, caller.exit, marks):
        return None
    return _for_nothing(analyser, caller, last, marks, frozenset())


def _argument(expr: ir.Call) -> ir.Expr | None:
    """The literal that keeps the graph, unless the gradients themselves are to be differentiated."""
    if any(
        word.name in (None, "inputs") or (word.name == "create_graph" and not is_false(word.value))
        for word in expr.keywords
    ):
        return None
    given = next((word.value for word in expr.keywords if word.name == "retain_graph"), None)
    return given if isinstance(given, ir.Const) and given.value is True else None


def _recorded(analyser: Analyser, summary: Summary, last: Backward) -> frozenset[Source]:
    """The operations that the backward uses and that each iteration of its loop records anew; empty if there are
    others."""
    nodes = {item: node for item in last.reached if (node := summary.graphs.nodes.get(item)) is not None}
    # a parameter may be created before the loop, as it saves nothing
    made = {item for item, node in nodes.items() if not node.leaf}
    if any(_loops(summary, item)[: len(last.loops)] != last.loops for item in made):
        return frozenset()
    if any(from_earlier(analyser, summary, item, last) for item in last.reached):
        return frozenset()
    return frozenset(made)


def _loops(summary: Summary, item: Source) -> tuple[Source, ...]:
    """The loops around the recording of a node; a part of a result is recorded with it."""
    node = summary.graphs.nodes[item]
    while not node.loops and isinstance(item, tuple) and not isinstance(item, Path) and isinstance(item[-1], str):
        item = item[0] if len(item) == 2 else item[:-1]
        whole = summary.graphs.nodes.get(item)
        if whole is None:
            break
        node = whole
    return node.loops


def _is_last(summary: Summary, last: Backward, marks: frozenset[Source]) -> bool:
    """Whether no later backward uses the same operations."""
    for other in summary.backwards:
        if other.site == last.site:
            continue
        if not _share(summary, marks, other.reached):
            if other.site.at > last.site.at and not _is_known(summary, other):
                return False  # a helper may hide the origin of its loss
            continue
        if (
            excluded(other.tests, last.tests)
            and other.site.at not in summary.notes.retained
            and _loss(summary, other) == _loss(summary, last)
            and not _scales(other)
        ):
            return False  # one branch frees the graph of the loss and the other keeps it: that is intended
        before = other.site.at < last.site.at and other.loops[: len(last.loops)] == last.loops
        if not before and not excluded(other.tests, last.tests):
            return False
    return True


def _loss(summary: Summary, backward: Backward) -> str:
    """The source of what a call of ``backward`` differentiates."""
    call = call_at(summary.function.body, backward.site.at)
    return text(call.func.value, 200) if call is not None and isinstance(call.func, ir.Attr) else ""


def _scales(backward: Backward) -> bool:
    """Whether it is the backward for mixed precision, which differs from the other one only by that."""
    return any(_PRECISION.search(text(test, 200).lower()) for test in backward.tests)


def _share(summary: Summary, marks: frozenset[Source], reached: frozenset[Source]) -> bool:
    """Whether two backwards use the same operations: two results of one call of a model share its trunk."""
    return bool(marks & reached) or bool(_calls_of_models(summary, marks) & _calls_of_models(summary, reached))


def _calls_of_models(summary: Summary, sources: frozenset[Source]) -> set[Source]:
    """The model calls that contribute to a graph."""
    return {
        item[0] if isinstance(item, tuple) and not isinstance(item, Path) else item
        for item in sources
        if (node := summary.graphs.nodes.get(item)) is not None and node.model
    }


def _is_known(summary: Summary, other: Backward) -> bool:
    """Whether a known model or parameter contributes to the graph of a backward."""
    nodes = (summary.graphs.nodes.get(item) for item in other.reached)
    return any(node is not None and (node.model or node.definite) and not node.unknown for node in nodes)


def _goes_on(analyser: Analyser, summary: Summary, marks: frozenset[Source], left: frozenset[Source]) -> bool:
    """Whether a value with this graph reaches code that may run another backward: unknown code, callers, other
    methods."""
    if marks & (summary.left - left - summary.notes.logged) or captured(summary, set(marks)):
        return True
    if marks & summary.notes.returned and not dropped_by_callers(analyser, summary):
        return True
    if any(
        marks & summary.graphs.closure(tensors_within(summary, state, value).src) for value, state in summary.yields
    ):
        return True
    for path in places_with(summary, summary.exit, marks):
        cls = summary.function.cls
        if cls is None or not isinstance(path, Path) or not path.steps or analyser.facts.in_backward(path.steps):
            return True
        if _is_read_in_training(analyser, summary, cls, path.steps[-1].removeprefix(".")):
            return True
        if not all(name.startswith(("torch.nn.", "abc.")) for name in analyser.program.ancestors(cls)[1]):
            return True
    return False


def _is_read_in_training(analyser: Analyser, summary: Summary, cls: Class, name: str) -> bool:
    """Whether another method of the class runs a backward and reads an attribute, which a call may just have set."""
    return any(
        method is not summary.function
        and any(isinstance(part, ir.Attr) and part.name == name for part in parts(method.body))
        and ((other := analyser.summary(method)) is None or bool(other.backwards))
        for method in analyser.program.methods(cls)
    )


def _has_leaves_before(analyser: Analyser, summary: Summary, last: Backward) -> bool:
    """Whether tensors are made leaves before the loop, here or in a callee: what is computed from them there, once, has
    a graph that each iteration uses."""
    if not last.loops:
        return False
    inside = {
        one.at
        for loop in walk_statements(summary.function.body)
        if isinstance(loop, ir.For | ir.While)
        for one in walk_statements(loop.body)
        if ("loop", loop.at) == last.loops[0]
    }
    before = [one for one in walk_statements(summary.function.body) if one.at not in inside]
    if any(_makes_leaf(analyser, summary, one) for one in before):
        return True
    called = (analyser.function_at(record.callee) for record in summary.calls.values() if not record.loops)
    return any(
        _makes_leaf(analyser, analyser.summary(function), one)
        for function in called
        if function is not None
        for one in walk_statements(function.body)
    )


def _makes_leaf(analyser: Analyser, summary: Summary | None, statement: ir.Stmt) -> bool:
    """Whether a statement makes a tensor a leaf that is no parameter by its name: ``t.requires_grad = True``,
    ``t.requires_grad_()``."""
    made: list[ir.Expr] = []
    if isinstance(statement, ir.Assign) and is_true(statement.value):
        made += [one.value for one in statement.targets if isinstance(one, ir.Attr) and one.name == "requires_grad"]
    for call in parts_of(statement):
        func = call.func if isinstance(call, ir.Call) and not any(map(is_false, call.args)) else None
        if isinstance(func, ir.Attr) and func.name == "requires_grad_":
            made.append(func.value)
    names = (one.id if isinstance(one, ir.Name) else _of_object(analyser, summary, one) for one in made)
    return any(name and _PARAMETER.match(name) is None for name in names)


def _of_object(analyser: Analyser, summary: Summary | None, expr: ir.Expr) -> str:
    """The name of an attribute of a variable other than ``self``, whose attributes are known, unless it is a part of
    a model: ``model.head.requires_grad_()``."""
    if not isinstance(expr, ir.Attr) or not isinstance(expr.value, ir.Name) or expr.value.id == "self":
        return ""
    owner = summary.exit.env.get(expr.value.id) if summary is not None and summary.exit is not None else None
    if owner is None or not owner.kinds & MODULE:
        return expr.name
    classes = [analyser.cls(ref) for ref in owner.refs if ref.kind == "instance"]
    tensors = any(cls is not None and not analyser.attribute(cls, expr.name).kinds & MODULE for cls in classes)
    return expr.name if tensors else ""


def _is_sure(analyser: Analyser, summary: Summary, last: Backward, marks: frozenset[Source]) -> bool | None:
    """Whether the graph is surely new in each iteration. False if an unknown model or helper may keep a part of it;
    None if one does."""
    sure = True
    for item in last.reached:
        if (
            isinstance(item, Path)
            and not has_no_graph(analyser, summary, item)
            and not is_leaf(summary.function.body, named(item))
        ):
            if not is_called(analyser, summary, item) and (
                is_given(summary, item, last) or is_kept(analyser, summary, item)
            ):
                return None  # each iteration, or the caller's next backward, uses the graph that it brings in
            sure = False
    nodes = [summary.graphs.nodes[item] for item in marks]
    if any((node.unknown or node.opaque) for node in nodes):
        sure = False
    if not any(node.model for node in nodes):
        sure = False
    for run in summary.runs.values():
        if not ({run.node, *run.value.src} & marks):
            continue
        if _handles_state(summary, run.text):
            return None
        found = keeps_a_graph(analyser, run.module)
        if found is Stateful.YES or (not run.module.refs and may_be_stateful(analyser, summary.module)):
            return None
        sure = sure and found is Stateful.NO
    return sure


def _handles_state(summary: Summary, model: str) -> bool:
    """Whether the function manages state that the model keeps between calls: ``model.hidden = …``,
    ``model.detach_state()``."""
    owner = model.removesuffix(".forward")
    params = summary.function.params
    if summary.function.takes_self and params and owner == params[0].name:
        return False  # its own stores are known
    return any(
        isinstance(part, ir.Attr) and _STATE.search(part.name.lower()) is not None and text(part.value) == owner
        for part in parts(summary.function.body)
    )


def _alive(summary: Summary, loop: LoopState | None, marks: frozenset[Source], expr: ir.Call) -> tuple[str, ...]:
    """The names that hold the graph of one iteration while the model runs in the next one, that of the loss first."""
    if loop is None or summary.exit is None or not loop.counts:
        return ()
    runs = [run.site.at for run in summary.runs.values() if {run.node, *run.value.src} & marks]
    first = min(runs, default=0)
    begun = {name for one in walk_statements(loop.body) if one.at < first for name in names_bound_by(one)}
    # the statement of the model call binds its name only after the model has run
    for one in walk_statements(loop.body):
        if one.at < first and any(call.at == first for call in calls((one,))):
            begun -= names_bound_by(one)
    held = [name for name in variables_with(summary, summary.exit, marks) if name not in begun]
    return tuple(sorted(held, key=lambda name: (not mentions(expr, name), name.startswith("_"), name)))
