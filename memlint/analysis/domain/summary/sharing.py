"""Interning: equal parts of finished summaries become one object.

Each interpreted path, and each function, makes its own copies of source sets and values. In a large project these
copies take most of the summaries' memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from memlint.analysis.domain.values import EMPTY, Sources, V

if TYPE_CHECKING:
    from memlint.analysis.domain.state import State
    from memlint.analysis.domain.summary.summary import Summary


class Shared:
    """The interned sets and values of all summaries so far."""

    def __init__(self) -> None:
        self.sets: dict[Sources, Sources] = {}
        self.values: dict[tuple[object, ...], V] = {}
        #: by identity, the representatives in `values`
        self.known: dict[int, V] = {}


class _Sharing:
    """The interning of one summary."""

    def __init__(self, shared: Shared) -> None:
        self._sets = shared.sets
        self._values = shared.values
        self._known = shared.known
        #: by identity, which is stable as no value is created meanwhile
        self._met: dict[int, V] = {}

    def sources(self, sources: Sources) -> Sources:
        return self._sets.setdefault(sources, sources) if sources else EMPTY

    def value(self, value: V) -> V:
        at = id(value)
        if at in self._known:
            return value
        met = self._met.get(at)
        if met is None:
            met = self._met[at] = self._same(value)
            self._known[id(met)] = met
        return met

    def _same(self, value: V) -> V:
        sets = self._sets
        if value.src:
            value.src = sets.setdefault(value.src, value.src)
        if value.objs:
            value.objs = sets.setdefault(value.objs, value.objs)
        if value.syms:
            value.syms = sets.setdefault(value.syms, value.syms)
        if value.refs:
            value.refs = sets.setdefault(value.refs, value.refs)
        if value.store:
            value.store = sets.setdefault(value.store, value.store)
        # equal sets are one object by now; the constants True and 1 differ
        key = (
            value.kinds,
            id(value.src) if value.src else 0,
            value.bare,
            id(value.objs) if value.objs else 0,
            id(value.refs) if value.refs else 0,
            id(value.syms) if value.syms else 0,
            id(value.store) if value.store else 0,
            value.device,
            value.size,
            type(value.const),
            value.const,
            value.extent,
        )
        return self._values.setdefault(key, value)

    def values(self, values: dict[str, V]) -> None:
        for name, value in values.items():
            values[name] = self.value(value)

    def state(self, state: State) -> None:
        self.values(state.env)
        for path, value in state.sym.items():
            state.sym[path] = self.value(value)
        for obj in state.heap.values():
            obj.elem = self.value(obj.elem)
            self.values(obj.fields)
        state.freed_may = self.sources(state.freed_may)
        state.freed_must = self.sources(state.freed_must)
        state.pending = self.sources(state.pending)
        state.fresh = self.sources(state.fresh)


def share(summary: Summary, known: Shared) -> None:
    """Intern the sets and values of a finished summary."""
    shared = _Sharing(known)
    if summary.last is not None:
        shared.state(summary.last)
    for node in summary.graphs.nodes.values():
        node.parents = shared.sources(node.parents)
        node.loose = shared.sources(node.loose)
    summary.graphs.evidence = {shared.sources(evidence) for evidence in summary.graphs.evidence}
    summary.backwards = [one._replace(reached=shared.sources(one.reached)) for one in summary.backwards]
    for record in summary.calls.values():
        shared.values(record.args)
        record.result = shared.value(record.result)
    for store in summary.stores.values():
        store.value = shared.value(store.value)
        store.objs = shared.sources(store.objs)
        if store.incoming is not None:
            store.incoming = shared.value(store.incoming)
    for run in summary.runs.values():
        run.module, run.value = shared.value(run.module), shared.value(run.value)
