"""Losses of several batches that are summed in a loop, with one backward after it."""

from __future__ import annotations

from collections.abc import Iterator

from memlint.sdk import Place, Site
from memlint.sdk.project import Analyser, Summary, loop_of_sum, marks_of
from memlint.sdk.values import Path, Sources, Store

from .rule import SummedLosses


def detect(analyser: Analyser, summary: Summary) -> Iterator[SummedLosses]:
    """The sums of one function whose graphs a single backward after the loop needs."""
    for store in summary.stores.values():
        backward = _backward_behind(summary, store)
        if backward is None or not _is_of_batches(summary, store):
            continue
        loop = loop_of_sum(analyser, summary, store)
        if loop is None or loop.kind != "for" or loop.over in ("modules", "epochs"):
            continue
        if loop.over == "range" and _holds_own_state(summary, store):
            continue
        yield SummedLosses(
            site=store.site,
            function=summary.function.qual,
            certainty="medium",
            place=Place(store.place_kind, store.place_text),
            loop=loop,
            backward=backward,
        )


def _backward_behind(summary: Summary, store: Store) -> Site | None:
    """The backward that uses the stored value, and is not in the loop; None if there is none."""
    if store.loop is None or not summary.backwards:
        return None
    marks = marks_of(store)
    sites = (site for trained, loops, site, *_ in summary.backwards if marks & trained and store.loop.id not in loops)
    return next(sites, None)


def _is_of_batches(summary: Summary, store: Store) -> bool:
    """Whether each iteration runs a model of its own: no time steps, and no parts of one earlier forward."""
    assert store.loop is not None
    if any(
        other.kind == "carry" and other.how == "call" and other.loop is store.loop for other in summary.stores.values()
    ):
        return False  # time steps of a recurrence, not separate batches
    nodes = [node for item in _reached(summary, store) if (node := summary.graphs.nodes.get(item)) is not None]
    if any(node.definite and not node.leaf and store.loop.id not in node.loops for node in nodes):
        return False  # all use one forward before the loop, whose graph the first backward would free
    return any(node.model and store.loop.id in node.loops for node in nodes)


def _holds_own_state(summary: Summary, store: Store) -> bool:
    """Whether the value includes an attribute that another method has set, possibly with that method's graph."""
    own = f"p:{summary.function.own_name}" if summary.function.takes_self else None
    return any(isinstance(item, Path) and item.root == own for item in _reached(summary, store))


def _reached(summary: Summary, store: Store) -> Sources:
    return summary.graphs.closure(store.entering.src)
