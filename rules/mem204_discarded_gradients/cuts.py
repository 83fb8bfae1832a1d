"""Where the graph of a network can be cut before it reaches another one."""

from __future__ import annotations

from typing import NamedTuple

from memlint.sdk import Site
from memlint.sdk.project import Analyser, Summary, captured
from memlint.sdk.syntax import (
    call_at,
    ir,
    statement_at,
    text,
    unpacked_targets,
    walk_expression,
    walk_statements,
)
from memlint.sdk.values import ModelRun, Source, tensors_within

#: names in the files of networks whose forward may differ without grad mode
_DIFFERENTIATE = frozenset({"enable_grad", "set_grad_enabled", "is_grad_enabled", "checkpoint", "requires_grad_"})


class Cuts(NamedTuple):
    """``sites``: the expressions to detach; ``guarded``: the statement to guard instead."""

    sites: tuple[Site, ...] = ()
    guarded: Site | None = None


def at_the_run(analyser: Analyser, summary: Summary, run: ModelRun) -> Cuts:
    """The cut of a graph that nothing else uses: none is recorded, unless the network may differentiate inside."""
    statement = statement_at(summary.function.body, run.site.at)
    inside = any(not _DIFFERENTIATE.isdisjoint(cls.module.names) for cls in analyser.classes(run.module))
    if isinstance(statement, ir.Assign) and statement.value.at == run.site.at and not inside:
        return Cuts(guarded=summary.site(statement.at))
    return Cuts() if run.value.objs else Cuts(sites=(run.site,))


def at_the_use(summary: Summary, run: ModelRun, use: ModelRun) -> Cuts:
    """The cut of a graph in the arguments of the network that gets it; none where an argument is a container."""
    call = call_at(summary.function.body, use.site.at)
    if call is None or run.value.objs or any(isinstance(one, ir.Display | ir.DictDisplay) for one in call.passed):
        return Cuts()
    if len(call.passed) == 1 and not isinstance(call.passed[0], ir.Starred):
        sites = [call.passed[0].at]
    else:
        places = _derived(summary, run, use)
        sites = [one.at for one in call.passed if _names_one(one, places, run.site.at)]
    if not sites:
        return Cuts()
    return Cuts(tuple(map(summary.site, sites)))


def _derived(summary: Summary, run: ModelRun, use: ModelRun) -> frozenset[str]:
    """The places that hold what is computed from the output of a run, up to its use."""
    places: set[str] = set()
    for statement in walk_statements(summary.function.body, into_definitions=False):
        if isinstance(statement, ir.Assign) and statement.at < use.site.at:
            if _names_one(statement.value, frozenset(places), run.site.at):
                places.update(text(target, 200) for target in unpacked_targets(statement))
            else:
                places.difference_update(text(target, 200) for target in unpacked_targets(statement))
    return frozenset(places)


def _names_one(expr: ir.Expr, places: frozenset[str], at: int) -> bool:
    """Whether an expression contains one of the places, or the call with an ordinal, and detaches none."""
    parts = list(walk_expression(expr))
    if any(isinstance(part, ir.Attr) and part.name in ("detach", "data", "item") for part in parts):
        return False
    return any(
        part.at == at or (isinstance(part, ir.Name | ir.Attr | ir.Subscript) and text(part, 200) in places)
        for part in parts
    )


def is_kept_elsewhere(summary: Summary, run: ModelRun) -> bool:
    """Whether the graph of a run reaches something besides the backwards: a result, an attribute, unknown code."""
    last = summary.last
    if last is None or captured(summary, set(run.marks)) or summary.yields:
        return True
    if run.marks & (summary.left - summary.notes.logged) or run.marks & summary.notes.returned:
        return True
    return any(
        run.marks & summary.graphs.closure(tensors_within(summary, last, value).src) for value in last.sym.values()
    )


def runs_behind(summary: Summary, sources: frozenset[Source]) -> tuple[list[ModelRun], bool, bool]:
    """The runs whose graphs some sources include; whether other parameters or networks take part; whether unresolved
    code may bring more."""
    nodes = summary.graphs.nodes
    reached = summary.graphs.closure(sources)
    runs = [one for one in summary.runs.values() if one.node in reached or one.value.src & reached]
    own = frozenset().union(*(one.marks for one in runs)) if runs else frozenset()
    calls = {one.site.at for one in runs}
    rest = [node for item in reached - own if (node := nodes.get(item)) is not None and node.at not in calls]
    others = any(node.definite or node.model for node in rest)
    unknown = any(node.unknown or node.opaque for node in rest)
    return runs, others, unknown
