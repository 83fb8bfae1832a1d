"""A callee's symbols, values and graphs in the terms of its caller."""

from __future__ import annotations

from collections.abc import Iterable

from memlint.analysis.calls.call_symbols import Symbols
from memlint.analysis.domain.graphs import Node, part_of
from memlint.analysis.domain.recorded_modes import whole_of
from memlint.analysis.domain.state import AMBIENT, OFF, ON, Obj
from memlint.analysis.domain.tensor_ops import names_number, on_accelerator
from memlint.analysis.domain.values import (
    ACCELERATOR,
    ANYWHERE,
    BATCH,
    CALLABLE,
    CONTAINER,
    CPU,
    DATA,
    EMPTY,
    MODULE,
    NONE,
    NOTHING,
    OUTPUT,
    SAMPLE,
    SOME_SIZE,
    TENSORS,
    TREE,
    UNKNOWN,
    UNKNOWN_VALUE,
    Path,
    Ref,
    Source,
    Sources,
    V,
    join,
    ordered,
)
from memlint.analysis.index.roles_by_name import names_model
from memlint.analysis.syntax.expression_text import text
from memlint.analysis.transfer.handed_on import is_of_object
from memlint.analysis.transfer.held_values import tensors_within
from memlint.analysis.transfer.library.placement import device_of
from memlint.analysis.transfer.modules.modes import frozen_of
from memlint.ir import nodes as ir

#: the most objects that a call copies from a callee, and the most objects in one state
MAX_OBJECTS, MAX_HEAP = 200, 500
#: through how many calls model runs and created modules are distinguished
MAX_RUN_DEPTH = 3
#: the most lifted graphs of one call that are linked to their ancestors
MAX_KIN = 200
#: the most storages that one value distinguishes; functions that call each other multiply them on each path
MAX_STORES = 100
#: how many parents a node may have without a charge to the budget
MANY_PARENTS = 256


class Translation(Symbols):
    """One call site: the summary's symbols, values and graphs in the caller's state."""

    def value(self, value: V, depth: int = 4) -> V:
        """The caller's view of a callee's value."""
        plain = not (value.syms or value.src or value.objs or value.store)
        if plain and value.device == ANYWHERE and not value.kinds & TENSORS and not _is_bound(value):
            return value.but() if value.kinds else NOTHING  # a copy, as an identical object counts as not assigned
        result = NOTHING
        for path in ordered(value.syms) if value.syms else ():
            result = join(result, self.resolve(path))
        if value.device != ANYWHERE and value.syms and result.kinds:
            # the callee moved its argument
            device = CPU | ACCELERATOR if self._chosen(value.device) else value.device
            result = result.but(device=device & ~ANYWHERE | (result.device if device & ANYWHERE else 0))
        if value.size == SAMPLE and value.syms and result.size == BATCH:
            result = result.but(size=SOME_SIZE)  # the callee names it as one sample
        own = value.src - value.syms if value.syms else value.src
        kinds = value.kinds & ~UNKNOWN if value.syms else value.kinds
        if kinds & CONTAINER and value.syms and not value.objs:
            kinds &= ~CONTAINER
        if result.kinds and not own and not (kinds & ~result.kinds) and not value.objs:
            return result
        if kinds or own or value.objs:
            objs = frozenset([self.object(key, depth) for key in self._in_order(value.objs)]) if depth else EMPTY
            src = self.sources(own) if own else EMPTY
            for item in src if value.bare else ():
                if item in self.fn.graphs.nodes:
                    self.fn.graphs.nodes[item].partial = True
            refs = frozenset(self._bound(ref) for ref in value.refs) if value.refs else EMPTY
            if own and value.kinds & UNKNOWN and not kinds & ~(DATA | NONE):
                kinds |= UNKNOWN  # a number on one path, and a value computed from a symbol on another
            if kinds == UNKNOWN and self._is_output(value):
                kinds, value = TREE, value.but(kinds=TREE, size=OUTPUT)
            rest = V(
                kinds or (UNKNOWN if own else 0),
                src,
                bare=value.bare,
                objs=objs,
                refs=refs,
                store=self._made_here(value),
                device=self._placed(value),
                size=value.size,
                const=value.const,
                extent=value.extent,
            )
            result = join(result, rest) if rest.kinds else result
        return result if result.kinds else (UNKNOWN_VALUE if value.kinds else NOTHING)

    def _is_output(self, value: V) -> bool:
        """Whether an unresolved call in the callee made the value, and what this call passes for it is a model that
        runs on tensors: ``predict(model, batch)`` of ``return model(batch.cuda())``."""
        made = [self.callee.graphs.nodes.get(item) for item in value.src] if value.src == value.store else []
        return bool(made) and all(node is not None and self._runs_model(node) for node in made)

    def _runs_model(self, node: Node) -> bool:
        """Whether an unresolved call runs a model in the caller: a known one, or under no_grad what is named like one
        and gets tensors that are not on the host."""
        if not node.unknown or node.callee is None or names_number(node.callee.text):
            return False
        if self._is_model(node.callee):
            return True
        inputs = [self.resolve(one) for one in node.parents if isinstance(one, Path) and one != node.callee]
        return (
            self.state.grad == OFF
            and self.resolve(node.callee).is_only(UNKNOWN)
            and names_model(node.callee.text)
            and any(one.is_only(TENSORS) and one.size in (BATCH, OUTPUT) and one.device != CPU for one in inputs)
        )

    def _bound(self, ref: Ref) -> Ref:
        """A reference with the objects in it (a container, a distribution's shape, a method's receiver) in the caller's
        terms."""
        return ref._replace(self_=self.value(ref.self_)) if ref.kind == "shape" or is_of_object(ref) else ref

    def _placed(self, value: V) -> int:
        """The device of a callee's value in the caller: that of the arguments, unless the value has its own."""
        if self._chosen(value.device):
            return CPU | ACCELERATOR
        if value.device != ANYWHERE or not value.kinds & TENSORS:
            return value.device
        if self._device is None:
            self._device = device_of(
                self.fn,
                self.before,
                [given for given in self.bound.values() if given.kinds & (TENSORS | MODULE | CONTAINER)],
            )
        return self._device if self._device == ACCELERATOR else ANYWHERE

    def _chosen(self, device: int) -> bool:
        """Whether the callee takes the device from a parameter, for which this call passes a choice that includes the
        host."""
        if not on_accelerator(device) or self.expr is None:
            return False
        arguments = self.expr.passed
        return any(isinstance(item, ir.IfExp) and _names_host(item) for item in arguments)

    def _made_here(self, value: V) -> Sources:
        """The storages of a callee's value. Modules that the callee made get keys of this call."""
        if not value.store:
            return EMPTY
        if not value.kinds & (MODULE | UNKNOWN) or len(value.store) > MAX_STORES:
            return frozenset((self.key,))
        # a part that is known only by its whole is not followed out of the callee
        return frozenset([self._made(item) for item in value.store if whole_of(item) is None])

    def _made(self, item: Source) -> Source:
        nested = item
        for _ in range(MAX_RUN_DEPTH):
            if not (isinstance(nested, tuple) and len(nested) > MAX_RUN_DEPTH):
                return (*self.key, item)
            nested = nested[-1]
        return self.key

    def _in_order(self, objs: Sources) -> Iterable[Source]:
        """The callee's objects, in an order that is the same in every run: how deep one is followed depends on where it
        is met first."""
        if len(objs) < 2:
            return objs
        return [*(key for key in self.exit.heap if key in objs), *ordered(objs.difference(self.exit.heap))]

    def object(self, key: Source, depth: int) -> Source:
        """The caller's object for an object of the callee."""
        if key in self._objects:
            return self._objects[key]
        self.fn.spend(1)
        if len(self._objects) >= MAX_OBJECTS or len(self.state.heap) >= MAX_HEAP:
            self.fn.cut_short = True
            key = None
        new = (*self.key, key)
        self._objects[key] = new
        obj = self.exit.heap.get(key)
        if obj is None:
            self.state.heap[new] = Obj("list", NOTHING, {}, self.fn.loop_ids)
        else:
            self.state.heap[new] = Obj(
                obj.kind,
                self.value(obj.elem, depth - 1) if obj.elem.kinds else NOTHING,
                {name: self.value(item, depth - 1) for name, item in obj.fields.items()},
                self.fn.loop_ids,
                obj.bounded,
                obj.cls,
                obj.text,
            )
        self.state.fresh |= {new}
        return new

    def sources(self, sources: frozenset[Source]) -> frozenset[Source]:
        if len(sources) > 1:  # several may become one node of the caller, which the first of them describes
            for source in self.callee.graphs.in_order(sources.difference(self._nodes)):
                self.source(source)
        found: set[Source] = set()
        for source in sources:
            found |= self.source(source)
        return frozenset(found)

    def source(self, source: Source) -> frozenset[Source]:
        """The caller's nodes for a graph source of the callee. A few nodes stand for all of the callee's nodes."""
        if isinstance(source, Path):
            return self.graph_of(source)
        if source not in self._nodes:
            self._nodes[source] = self._translated(source)
        return self._nodes[source]

    def _translated(self, source: Source) -> frozenset[Source]:
        graphs = self.callee.graphs
        if source not in graphs.nodes or self._is_cut(graphs.nodes[source].callee):
            return EMPTY
        if self.fn.is_full or not self.fn.spend(len(graphs.ancestry(source)) // 16):
            return self._unfollowed()
        symbols, nodes, roots = graphs.digest(source)
        parents: frozenset[Source] = EMPTY
        certain: frozenset[Source] = EMPTY
        for path, sure in symbols:
            here = self.graph_of(path)
            parents |= here
            certain |= here if sure else EMPTY
        # a node with thousands of parents takes as much memory, once for each such node
        if len(parents) > MANY_PARENTS and not self.fn.spend(len(parents) // 16):
            return self._unfollowed()
        definite, unknown, model = self._recorded(nodes)
        own = graphs.nodes[source]
        if own.ambient and self.state.grad == OFF:
            return EMPTY
        beside = graphs.beside(source)
        if beside:
            # a value beside the output of an unresolved model may be a number for display
            definite, model, unknown = None, False, own
            known = own.parents - own.loose if own.beside else own.parents
            whole = self.sources(frozenset(item for item in known if own.beside or part_of(source, item)))
            parents, certain = parents | whole, certain | whole
        if definite is None and source in self.proved:
            definite = own
        if definite is None and unknown is None and not parents:
            if not any(self.resolve(path).kinds & UNKNOWN for path, _ in symbols):
                return EMPTY
            unknown = own  # computed from what is not resolved
        freed = self._freed_by_callee(source)
        tag = "d" if definite else "u" if unknown else "o"
        # graphs of one kind from different arguments are distinct
        key = (*self.key, tag, freed, source if tag == "u" else roots)
        shown = definite or own
        open_mode = own.ambient or shown.ambient
        node = Node(
            self.at,
            text(self.expr.func) if self.expr is not None else shown.what,
            definite is not None,
            unknown is not None and definite is None,
            open_mode and not self.state.grad & ON and bool(self.state.grad & AMBIENT),
            parents,
            self._called_again(own.callee) if tag == "u" else None,
            ((self.callee.site(shown.at), shown.what), *shown.via)[:4],
            model,
            own.guess,
            own.leaf,
            loops=self.fn.loop_ids,
            loose=parents - certain,
            beside=beside,
        )
        self.fn.graphs.record(key, node)
        return self._record(key, freed)

    def _recorded(self, nodes: Iterable[Node]) -> tuple[Node | None, Node | None, bool]:
        """Of the operations behind a graph, those that autograd records in the caller: a definite one, an unknown one
        (None if there is none), and whether a model is among the definite ones."""
        definite: Node | None = None
        unknown: Node | None = None
        model = False
        for node in nodes:
            if node.ambient and self.state.grad == OFF:
                continue
            if self._runs_frozen(node):
                continue
            if node.definite:
                definite = _shown_first(definite, node)
                model = model or node.model
            elif node.unknown and (node.callee is None or not self._known(node.callee)):
                unknown = node
            elif node.unknown and node.callee is not None and self._is_model(node.callee):
                definite, model = _shown_first(definite, node), True
        return definite, unknown, model

    def _record(self, key: Source, freed: str) -> frozenset[Source]:
        """The source of a graph that this call records. Its freed state becomes what the callee leaves."""
        one = frozenset((key,))
        if key in self.state.freed_may:  # a superset of `freed_must`
            self.state.freed_must -= one
            self.state.freed_may -= one
        if freed == "freed":
            self.state.freed_must |= one
        if freed != "live":
            self.state.freed_may |= one
        return one

    def _freed_by_callee(self, source: Source) -> str:
        """What the callee's backwards did to a graph, or to all models in it: "freed", "some" (a part was freed) or
        "live"."""
        graphs, must, may = self.callee.graphs, self.exit.freed_must, self.exit.freed_may
        if source in must:
            return "freed"
        models = {item for item in graphs.ancestry(source) if item in graphs.nodes and graphs.nodes[item].model}
        if models and models <= must:
            return "freed"
        return "some" if source in may or not models.isdisjoint(may) else "live"

    def _unfollowed(self) -> frozenset[Source]:
        """One unknown node in place of a graph that is too large."""
        key = (*self.key, "cut")
        self.fn.graphs.record(key, Node(self.at, self.key[-1], unknown=True, loops=self.fn.loop_ids))
        return frozenset((key,))

    def _is_cut(self, path: Path | None) -> bool:
        """Whether the callee of a node is a function argument that returns no graph (``lambda t: t.item()``)."""
        if path is None or path.steps or not path.root.startswith("p:"):
            return False
        value = self.resolve(path)
        if not value.refs or not value.is_only(CALLABLE) or any(ref.kind != "func" for ref in value.refs):
            return False
        analyser = self.fn.analyser
        for ref in ordered(value.refs):
            function = analyser.function(ref)
            inner = analyser.summary(function) if function is not None and ref.self_ is None else None
            if inner is None or inner.exit is None or inner.cut_short or inner.result is None:
                return False
            if inner.function.is_generator or tensors_within(inner, inner.exit, inner.result).src:
                return False
        return True

    def _called_again(self, path: Path | None) -> Path | None:
        """The symbol of a function argument that a recursive call passes on unchanged; None for any other."""
        if path is None or path.steps or self.callee.function.key != self.fn.function.key:
            return None
        return path if self.resolve(path).syms == {path} else None

    def _known(self, path: Path) -> bool:
        value = self.resolve(path)
        return bool(value.kinds) and not value.kinds & UNKNOWN

    def _runs_frozen(self, node: Node) -> bool:
        """Whether a module that is frozen in the caller recorded the node."""
        if node.callee is None or not (
            (node.definite and node.model) or (node.unknown and self._is_model(node.callee))
        ):
            return False
        return frozen_of(self.fn, self.before, self.resolve(node.callee), None) is True

    def _is_model(self, path: Path) -> bool:
        return bool(self.resolve(path).kinds & MODULE)

    def link_ancestors(self) -> None:
        """Make lifted graphs the parents of the graphs computed from them, so that a backward frees them together."""
        lifted = {item: nodes for item, nodes in self._nodes.items() if nodes}
        if len(lifted) > MAX_KIN:
            return
        for item, nodes in lifted.items():
            older = self.callee.graphs.ancestry(item) & lifted.keys() - {item}
            parents = EMPTY.union(*(lifted[other] for other in older)) - nodes
            for key in nodes if parents else ():
                self.fn.graphs.add_parents(key, parents)


def _is_bound(value: V) -> bool:
    return value.kinds & CALLABLE != 0 and any(map(is_of_object, value.refs))


def _names_host(choice: ir.IfExp) -> bool:
    """``device if keep else "cpu"``"""
    return any(
        (isinstance(arm, ir.Const) and arm.value == "cpu")
        or (isinstance(arm, ir.Name) and arm.id.lower() == "cpu")
        or (isinstance(arm, ir.Call) and any(isinstance(arg, ir.Const) and arg.value == "cpu" for arg in arm.args))
        for arm in (choice.body, choice.orelse)
    )


def _shown_first(a: Node | None, b: Node) -> Node:
    """The node that represents a graph in messages: a model's before others, an earlier one before a later one."""
    return b if a is None or (not b.model, b.at, b.what) < (not a.model, a.at, a.what) else a
