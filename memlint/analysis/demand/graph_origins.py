"""The origins of a graph: in the input of a network, and in a loss beside the network's output."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from memlint.analysis.demand.used_up_graphs import captured
from memlint.analysis.domain.graphs import Node
from memlint.analysis.domain.summary.effects import Backward, ModelRun
from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.domain.values import Path, Source, Sources
from memlint.analysis.syntax.syntax import parts_of, statement_at
from memlint.analysis.transfer.held_values import tensors_within
from memlint.analysis.transfer.modules.optimizer_parameters import _DATA, _DATA_CALLS
from memlint.ir import nodes as ir

if TYPE_CHECKING:
    from memlint.analysis.facts.analyser import Analyser


def is_frozen_run(summary: Summary, source: Source) -> bool:
    """Whether a source stands for the run of a frozen model on an input that has a graph, such as a leaf that is
    trained through the model."""
    return (
        isinstance(source, tuple)
        and not isinstance(source, Path)
        and source[1:] == ("run",)
        and summary.graphs.attached(frozenset((source,)))[0] == "yes"
    )


def is_of_new_leaves(summary: Summary, sources: Sources, loop: Source) -> bool:
    """Whether graphs begin at leaves that each iteration of a loop makes, and nowhere else: no parameter and no model
    takes part, and no backward() of the function has given the leaves their gradients."""
    reached = summary.graphs.closure(sources)
    if any(reached & done for done, *_ in summary.backwards):
        return False
    nodes = summary.graphs.nodes_of(reached)
    begun = [node for node in nodes if node.definite or node.unknown or node.guess]
    return bool(begun) and len(nodes) == len(reached) and all(node.leaf and loop in node.loops for node in begun)


def leaves_beside(summary: Summary, run: ModelRun) -> frozenset[int]:
    """The ordinals at which the function makes leaves that can be no input of the run, and no part of what it runs.
    Empty if an unresolved call gives the run an input, or if hooks may run inside."""
    nodes = summary.graphs.nodes
    node = nodes.get(run.node)
    if node is None or summary.last is None or any("hook" in name for name in summary.module.names):
        return frozenset()
    inputs = summary.graphs.closure(node.parents)
    if any(item in nodes and nodes[item].unknown for item in inputs):
        return frozenset()
    kept = {
        source for value in summary.last.sym.values() for source in tensors_within(summary, summary.last, value).src
    }
    given = {
        source
        for record in summary.calls.values()
        for value in record.args.values()
        for source in tensors_within(summary, summary.last, value).src
    }
    near = inputs | summary.left | summary.escaped | kept | given
    return frozenset(
        made.at
        for item, made in nodes.items()
        if made.leaf and item not in near and not captured(summary, frozenset((item,)))
    )


def gives_no_gradient(analyser: Analyser, summary: Summary, run: ModelRun) -> bool:
    """Whether no input of the module carries a graph."""
    node = summary.graphs.nodes.get(run.node)
    if node is None:
        return False
    reached = summary.graphs.closure(node.parents | run.value.src)
    return not any(
        inner is None or inner.definite or inner.guess or _may_record(inner)
        for _, inner in _beside(analyser, summary, run, reached)
    )


def networks_beside(
    analyser: Analyser, summary: Summary, run: ModelRun, backward: Backward
) -> tuple[ModelRun, ...] | None:
    """The runs of other modules whose graphs a backward also reaches. None if it may reach unknown ones: an unresolved
    call, a parameter, or a callee's own network takes part."""
    nodes = summary.graphs.nodes
    own = run.marks
    inputs = summary.graphs.closure(parent for item in own if item in nodes for parent in nodes[item].parents)
    runs = {mark: other for other in summary.runs.values() for mark in other.marks}
    others: dict[Source, ModelRun] = {}
    for item, inner in _beside(analyser, summary, run, backward.reached - inputs - own):
        other = runs.get(item)
        if other is not None:
            if not _is_same_module(run, other):
                others[other.key] = other
        elif inner is None or inner.definite or _may_record(inner):
            return None
    return tuple(others.values())


def _beside(
    analyser: Analyser, summary: Summary, run: ModelRun, sources: Sources
) -> Iterator[tuple[Source, Node | None]]:
    """The sources that the call of the module did not record itself, each with its operation; None for a symbol that
    may have a graph."""
    for item in sources:
        inner = summary.graphs.nodes.get(item)
        if isinstance(item, Path):
            if _attached_by_callers(analyser, summary, item) or _made_by_model(item):
                yield item, None
        elif inner is not None and inner.at != run.site.at and not _is_its_own(summary, run, item):
            yield item, inner


def _is_same_module(run: ModelRun, other: ModelRun) -> bool:
    one, two = run.module, other.module
    return run.text == other.text or bool(one.syms & two.syms or one.store & two.store)


def _may_record(node: Node) -> bool:
    """Whether the node is an unresolved call that may run a network: its name is not one of a data source."""
    name = node.what.split("(", 1)[0].rsplit(".", 1)[-1].lstrip("_")
    return node.unknown and not name.startswith(_DATA_CALLS)


def _is_its_own(summary: Summary, run: ModelRun, item: Source) -> bool:
    """Whether a graph source is a parameter that the module's forward reads itself: the call statement does not name
    it."""
    if not isinstance(item, tuple) or isinstance(item, Path) or len(item) != 3 or item[1] != "parameter":
        return False
    statement = statement_at(summary.function.body, run.site.at)
    if statement is None or statement.at != item[0]:
        return False
    parts = parts_of(statement)
    return not any(isinstance(part, ir.Attr) and part.name == item[2] for part in parts)


def _made_by_model(path: Path) -> bool:
    """Whether a model may have computed the value. An attribute may hold an output (``self.fake``), so only arguments,
    and attributes named like data, count as data."""
    if path.root == "p:self" and path.steps and _DATA.search(path.steps[0].lower()):
        return False
    return not path.root.startswith("p:") or path.root == "p:self"


def _attached_by_callers(analyser: Analyser, summary: Summary, path: Path) -> bool:
    name = path.root.split(":", 1)[1]
    for caller, record in analyser.facts.calls_of(summary.function):
        value = record.args.get(name)
        if value is None or caller.exit is None:
            continue
        sources = tensors_within(caller, caller.exit, value).src
        nodes = (caller.graphs.nodes.get(item) for item in sources)
        if caller.graphs.attached(sources)[0] == "yes" or any(node is not None and node.leaf for node in nodes):
            return True  # a leaf is trained, or its gradient is read
    return False
