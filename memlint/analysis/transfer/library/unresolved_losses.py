"""Objects of unresolved classes that receive a loss and of which a part is differentiated: ``state.loss``."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from memlint.analysis.domain.summary.effects import ModelRun
from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.domain.values import Path, Source, Sources


def trains_unresolved_object(summary: Summary, run: ModelRun, marks: AbstractSet[Source]) -> bool:
    """Whether a backward in the same round differentiates an unresolved object, and the graphs went into one."""
    for reached, loops, *_ in summary.backwards:
        if run.loops[: len(loops)] != loops or not _is_unresolved(summary, reached):
            continue
        if marks & (summary.left | summary.escaped) or _are_together(summary, reached, marks):
            return True
    return False


def _is_unresolved(summary: Summary, reached: Sources) -> bool:
    """Whether all graphs that a backward reaches are unknown except for that backward."""
    if any(isinstance(item, Path) for item in reached):
        return False
    nodes = [node for item in reached if (node := summary.graphs.nodes.get(item)) is not None]
    return bool(nodes) and all(node.unknown for node in nodes)


def _are_together(summary: Summary, reached: Sources, marks: AbstractSet[Source]) -> bool:
    """Whether something was computed from both the graphs and the object: ``losses.add(loss)``."""
    nodes = reached & summary.graphs.nodes.keys()
    closures = map(summary.graphs.ancestry, summary.graphs.nodes)
    return any(nodes & closure and marks & closure for closure in closures)
