"""Calls on objects of unknown class, judged by all project methods of the called name."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from memlint import knowledge
from memlint.analysis.domain.state import AMBIENT, OFF, ON, State
from memlint.analysis.domain.summary.function_state import FunctionState
from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.domain.values import DATA, NONE, Args, Path, Source, V, Words, join_all
from memlint.analysis.index.program import Function
from memlint.analysis.index.roles_by_name import names_model
from memlint.analysis.transfer.held_values import tensors_within
from memlint.analysis.transfer.library.computing import names_part
from memlint.analysis.transfer.signatures import accepts, bind, is_abstract
from memlint.ir import nodes as ir
from memlint.patterns import lazy_pattern

#: names of methods that return what a model computes, where no source defines them
_GIVES = lazy_pattern(
    r"(get_|compute_|calc_|call_|run_|_)*"
    r"(forward|predict|encod|decod|embed|infer|extract|feature|logit|score|loss|reconstruct|classif|detect|act|action|"
    r"q|value|log_prob|likelihood|elbo|output|translate|transcribe|segment|sample|represent|repr|hidden|"
    r"training_step|validation_step|test_step|pred|call|inverse|reverse|project|evaluate|apply_model|model|"
    r"attention|head|backbone|net)\w*"
)
#: attributes for layers with parameters in well-known networks
_LAYERS = lazy_pattern(r"(conv|bn|norm|layer|block|fc|linear|stem|stage|features|classifier|patch_embed)(_?\d+)*")


class MethodsByName(NamedTuple):
    """Facts about the methods that a call may mean. ``found``: their number. ``graph``: "yes" where all return a
    graph, "no" where none does, else "unknown"."""

    found: int
    graph: str
    #: at least half of them turn grad mode off around all that they run
    guards: bool
    #: one of them computes gradients
    differentiates: bool
    #: all of them run a backward, so that they train
    trains: bool
    #: none returns a value
    silent: bool
    #: none runs a layer or returns a graph: they look something up, or build an input
    idle: bool


def methods_by_name(fn: FunctionState, state: State, receiver: V, name: str, args: Args, words: Words) -> MethodsByName:
    """Facts about the project's methods of a name that accept the call; the calling method itself is none of them."""
    methods = [
        method
        for method in fn.analyser.methods_named(name, fn.function)
        if method.cls is not None
        and method.key != fn.function.key
        and not is_abstract(method)
        and not _delegates(method)
        and accepts(method, len(args) + 1, set(words))
    ]
    summaries = []
    for method in methods:
        bound = bind(fn, state.copy(), method, [receiver, *args] if method.takes_self else args, words)
        summary = fn.analyser.summary(method, bound)
        if summary is not None:
            summaries.append((method, summary))
    # methods from the caller's own folder, if any, are more likely meant
    folder = _folder(fn.function)
    near = [pair for pair in summaries if _folder(pair[0]) == folder] or summaries
    facts = {_graph_of(fn, method, summary) for method, summary in summaries}
    graph = facts.pop() if len(facts) == 1 and len(summaries) == len(methods) else "unknown"
    return MethodsByName(
        len(summaries),
        graph,
        bool(near) and 2 * sum(_guards(fn, summary) for _, summary in near) >= len(near),
        any(summary.notes.gradients for _, summary in summaries),
        bool(summaries) and all(summary.backwards for _, summary in summaries),
        bool(summaries) and all(summary.result is None or summary.result.is_only(NONE) for _, summary in summaries),
        graph == "no" and not any(_computes(summary) for _, summary in summaries),
    )


def graph_of_part(summary: Summary, call: ir.Call, name: str, steps: tuple[str, ...]) -> str:
    """Whether a part (``[1]`` of a tuple) of what the project's methods of a name return has a graph that the method
    records: "yes" or "no" where all that accept the call agree, "" where none has such a part, else "unknown". A
    part that is an argument has no graph of the method's."""
    if any(isinstance(arg, ir.Starred) for arg in call.args) or any(not word.name for word in call.keywords):
        return "unknown"
    words = {word.name for word in call.keywords if word.name}
    facts = set()
    for method in summary.analyser.methods_named(name, summary.function):
        if method.cls is None or is_abstract(method) or not accepts(method, len(call.args) + 1, words):
            continue
        callee = summary.analyser.summary(method)
        if callee is None or callee.cut_short:
            facts.add("unknown")
        elif (part := _part(callee, steps)) is not None:
            own = f"p:{method.own_name}"
            facts.add(_strongest(_fact(callee, source, own, set(), returned="no") for source in part.src))
    return facts.pop() if len(facts) == 1 else "unknown" if facts else ""


def _part(summary: Summary, steps: tuple[str, ...]) -> V | None:
    """The part of a method's result; None where the result has no such part."""
    value = summary.result
    for step in steps:
        objs = () if value is None or summary.exit is None else summary.exit.objects(value)
        parts = [obj.fields[step[1:-1]] for _, obj in objs if step[1:-1] in obj.fields]
        value = join_all(parts) if parts else None
    return None if value is None or summary.exit is None else tensors_within(summary, summary.exit, value)


def graph_by_name(name: str) -> str:
    """Whether a call that no code of the project defines has a graph, by its name: "yes" for a model inside the module
    (``model.encoder(x)``), "unknown" for a method that returns what layers compute, else "unheard"."""
    if names_model(name) or _LAYERS.fullmatch(name) or name in knowledge.computing_methods():
        return "yes"
    return "unknown" if _GIVES.fullmatch(name.lower()) is not None else "unheard"


def _delegates(method: Function) -> bool:
    """Whether a method only calls the method of the same name on another object: ``return
    self.inner.method(*args)``."""
    call = getattr(method.body[-1], "value", None) if method.body else None
    return (
        len(method.body) == 1
        and isinstance(call, ir.Call)
        and isinstance(call.func, ir.Attr)
        and call.func.name == method.name
    )


def _folder(function: Function) -> str:
    return function.module.key.rpartition("/")[0]


def _guards(fn: FunctionState, summary: Summary) -> bool:
    if summary.entry != OFF and not summary.notes.blocks and not _hands_to_guarded(fn, summary):
        return False
    return not any(run.grad & (AMBIENT | ON) for run in summary.runs.values())


def _hands_to_guarded(fn: FunctionState, summary: Summary) -> bool:
    """Whether a method calls one that has a guard: ``self.eval_step(batch)`` in a loop."""
    for record in summary.calls.values():
        inner = fn.analyser.summary(fn.analyser.function_at(record.callee))
        if inner is not None and inner.notes.blocks:
            return True
    return False


def _computes(summary: Summary) -> bool:
    """Whether a method may run a layer."""
    if summary.runs or summary.cut_short:
        return True
    return any(
        node.model or node.definite or (node.callee is not None and _may_be_layer(node.callee.steps, node.what))
        for node in summary.graphs.nodes.values()
    )


def _may_be_layer(steps: tuple[str, ...], shown: str) -> bool:
    """Whether a call on a part of the object may run a layer: ``self.encoder(x)``, ``self.net.embed(x)``, but not
    ``self.vocabulary.find(word)``. ``steps``: the part; ``shown``: the call."""
    called = shown.partition("(")[0].split(".")
    if not steps or called[-1] == steps[-1].lstrip("."):
        return names_part(steps)
    return names_model(steps[-1].lstrip(".")) or graph_by_name(called[-1]) != "unheard"


def _graph_of(fn: FunctionState, method: Function, summary: Summary) -> str:
    """Whether a method's result has a graph if its caller records: "yes", "no" or "unknown"."""
    value = summary.result
    if value is None or summary.exit is None:
        return "no"
    returns = method.node.returns if isinstance(method.node, ir.FunctionDef) else None
    noted = fn.analyser.annotated(method.module, returns) if returns is not None else None
    if value.is_only(NONE | DATA) or (noted is not None and noted.is_only(NONE | DATA)):
        return "no"
    inner = tensors_within(summary, summary.exit, value)
    own = f"p:{summary.function.params[0].name}" if summary.function.params else ""
    fact = _strongest(_fact(summary, source, own, set()) for source in inner.src)
    return "unknown" if fact == "no" and summary.cut_short else fact


def _strongest(facts: Iterable[str]) -> str:
    """The join of graph facts: "yes" over "unknown" over "no"."""
    found = set(facts)
    return "yes" if "yes" in found else "unknown" if "unknown" in found else "no"


def _fact(summary: Summary, source: Source, own: str, seen: set[Source], returned: str = "unknown") -> str:
    """The graph fact of a source. ``returned``: the fact for an argument that is returned."""
    if source in seen:
        return "no"
    seen.add(source)
    if isinstance(source, Path):
        return returned if source.root != own else "unknown"
    node = summary.graphs.nodes.get(source)
    if node is None or node.leaf:
        return "no"
    part = node.unknown and node.callee is not None and node.callee.root == own and names_part(node.callee.steps)
    if node.definite or part:
        called = node.what.partition("(")[0].rpartition(".")[2]
        return "unknown" if called in knowledge.guarded_methods() else "yes"
    if node.unknown:
        return "unknown"
    return _strongest(_fact(summary, parent, own, seen, returned) for parent in node.parents)
