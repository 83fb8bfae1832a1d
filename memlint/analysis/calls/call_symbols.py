"""The values of a callee's symbols in the caller: parameters, closure variables, attributes and members."""

from __future__ import annotations

from memlint.analysis.domain.state import State
from memlint.analysis.domain.summary.function_state import FunctionState
from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.domain.values import DATA_VALUE, NOTHING, UNKNOWN, UNKNOWN_VALUE, Path, Source, V
from memlint.analysis.transfer.heap import elements_of, read_item, read_symbol
from memlint.analysis.transfer.held_values import tensors_within
from memlint.analysis.transfer.reading import read_attribute
from memlint.analysis.transfer.scope import lookup, symbolic
from memlint.analysis.transfer.stores.class_places import MADE
from memlint.ir import nodes as ir


class Symbols:
    """One call site: the values of the summary's symbols in the caller's state before the call."""

    def __init__(
        self, fn: FunctionState, state: State, callee: Summary, bound: dict[str, V], at: int, expr: ir.Call | None
    ) -> None:
        self.fn = fn
        self.state = state
        self.before = fn.fork(state)
        self.callee = callee
        self.bound = bound
        self.at = at
        self.expr = expr
        self.key = (at, callee.function.module.key, callee.function.qual)
        self._nodes: dict[Source, frozenset[Source]] = {}
        self._objects: dict[Source, Source] = {}
        self._resolved: dict[Path, V] = {}
        self._graphs: dict[Path, frozenset[Source]] = {}
        self._device: int | None = None
        assert callee.exit is not None
        self.exit: State = callee.exit
        self.proved = {item for evidence in callee.graphs.evidence for item in evidence if item in callee.graphs.nodes}

    def resolve(self, path: Path) -> V:
        """The caller's value of a callee's symbol before the call."""
        known = self._resolved.get(path)
        if known is None:
            known = self._resolved[path] = self._resolve(path)
        return known

    def _resolve(self, path: Path) -> V:
        if not path.steps:
            return self._root(path.root)
        value = self.resolve(path.around)
        if not value.kinds:
            return UNKNOWN_VALUE
        step = path.steps[-1]
        if step.startswith("."):
            return read_attribute(self.fn, self.before, value, step[1:])
        if step == "[]":
            return elements_of(self.fn, self.before, value)
        return self._member(value, step[1:-1])

    def graph_of(self, path: Path) -> frozenset[Source]:
        """The caller's graph sources of all tensors in a callee's symbol."""
        known = self._graphs.get(path)
        if known is None:
            known = self._graphs[path] = tensors_within(self.fn, self.before, self.resolve(path)).src
        return known

    def _member(self, value: V, name: str) -> V:
        fake = ir.Subscript(self.at, ir.Name(self.at, "_"), ir.Const(self.at, "str", name))
        const: object = int(name) if name.lstrip("-").isdigit() else name
        return read_item(self.fn, self.before, value, V(DATA_VALUE.kinds, const=const), fake)

    def _root(self, root: str) -> V:
        kind, name = root.split(":", 1)
        if kind == "p":
            return self.bound.get(name, UNKNOWN_VALUE)
        if kind == "c":
            around = self.callee.function.enclosing
            if around is not None and around.key == self.fn.function.key:
                return lookup(self.fn, self.before, name)
            path = Path(root)
            return read_symbol(self.before, path)
        if root.startswith(MADE):
            return NOTHING  # the callee's own module
        path = Path(root)
        if kind == "g" and root.rsplit(":", 1)[0] == f"g:{self.fn.module.key}" and self.fn.function.node is None:
            variable = root.rsplit(":", 1)[1]
            if variable in self.before.env:
                return self.before.env[variable]
        if path in self.before.sym:
            return self.before.sym[path]
        if kind == "g":
            module, variable = root[2:].rsplit(":", 1)
            owner = self.fn.analyser.owner(module, variable)
            if owner is not None:
                return owner
            fact = self.fn.analyser.global_value("value", (self.fn.analyser.program.module(module), variable))
            return symbolic(fact, path)
        return V(UNKNOWN, frozenset((path,)), syms=frozenset((path,)))
