"""Graph lifetime: whether a backward keeps its graph, and which graphs are freed by the end of an iteration."""

from __future__ import annotations

from memlint.analysis.domain.events import Fact
from memlint.analysis.domain.state import State
from memlint.analysis.domain.summary.effects import LoopState
from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.domain.values import Path, Source, Sources, Words


def of_loop(summary: Summary, loop: LoopState | None, sources: Sources) -> Sources:
    """The sources that the loop itself records, if there are any; else all. Graphs of unresolved calls before the loop
    are left out, as there is only one of them."""
    nodes = summary.graphs.nodes
    made = [item for item in sources if item in nodes and (nodes[item].definite or nodes[item].model)]
    if loop is None or not any(loop.id in nodes[item].loops for item in made):
        return sources
    return frozenset(item for item in sources if item not in nodes or item in made or loop.id in nodes[item].loops)


def freed_by_backward(summary: Summary, state: State, sources: frozenset[Source]) -> Fact | None:
    """Whether a backward has freed these graphs: "yes" (on every path), "no" or "some"; None if there is no graph."""
    nodes = [source for source in sources if source in summary.graphs.nodes]
    # beside a recorded graph, a symbol (``loss / self.count``) is more likely a number than another graph
    made = any(summary.graphs.nodes[source].definite or summary.graphs.models_of(source) for source in nodes)
    tips = nodes if made else [*nodes, *(source for source in sources if isinstance(source, Path))]
    if not tips:
        return None
    models = {tip: summary.graphs.models_of(tip) for tip in tips}
    # operations after a freed model run save next to nothing
    if all(tip in state.freed_must or (models[tip] and models[tip] <= state.freed_must) for tip in tips):
        return "yes"
    if any(tip in state.freed_may or not models[tip].isdisjoint(state.freed_may) for tip in tips):
        return "some"
    return "no"


def keeps_graph(words: Words) -> bool:
    """Whether a backward with these keywords keeps the graph: ``retain_graph`` decides, which is ``create_graph`` by
    default. A ``create_graph`` of unknown value counts, as the gradients are then meant to be differentiated; a
    ``retain_graph`` of unknown value does not."""
    retain, create = words.get("retain_graph"), words.get("create_graph")
    if retain is not None and isinstance(retain.const, bool):
        return retain.const
    return create is not None and create.const is not False
