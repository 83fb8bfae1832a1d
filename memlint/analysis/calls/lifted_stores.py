"""Escapes lifted to the caller: stores of a callee into the caller's places or into its arguments."""

from __future__ import annotations

from typing import Any

from memlint.analysis.calls.translation import Translation
from memlint.analysis.domain.bound_names import argument
from memlint.analysis.domain.events import Step
from memlint.analysis.domain.summary.effects import LoopState, Spot, Store
from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.domain.values import (
    CONTAINER,
    EMPTY,
    NOTHING,
    SCALAR,
    SOME_SIZE,
    UNKNOWN_VALUE,
    Path,
    Source,
    V,
)
from memlint.analysis.syntax.expression_text import text
from memlint.analysis.transfer.held_values import tensors_within
from memlint.analysis.transfer.modules.flags import test_value
from memlint.analysis.transfer.stores.class_places import MADE, made_places
from memlint.analysis.transfer.stores.sample_keys import by_parameter, identified_by
from memlint.analysis.transfer.stores.step_outputs import OUTPUT_OF_STEP
from memlint.analysis.transfer.stores.stores import (
    carried_loosely,
    has_graph_for_sure,
    kind_of,
    note_carry,
    note_store,
    own_sources,
    parts_of,
)
from memlint.analysis.transfer.stores.written_keys import EACH_CALL, counted_by
from memlint.ir import nodes as ir

#: the most stores of one callee that are lifted, and through how many calls
MAX_LIFTED, MAX_DEPTH = 48, 6


class Lifting:
    """Lifts the stores of one call."""

    def __init__(self, call: Translation) -> None:
        self.call = call
        self.fn = call.fn
        self.state = call.state
        self.callee = call.callee
        #: whether a parameter's argument has a graph, for each parameter queried so far
        self._graphs: dict[str, bool] = {}

    def stores(self) -> None:
        """Lift the callee's stores into the caller's places and objects."""
        count = 0
        for store in list(self.callee.stores.values()):
            if not isinstance(store.place, Path) or store.lifted >= MAX_DEPTH or count >= MAX_LIFTED:
                continue
            if store.kind == "cat" or store.how == OUTPUT_OF_STEP or (store.how == "key" and store.keyed is None):
                # each call starts its keys from the same number, and so overwrites the entries of the last call. Only
                # a framework collects the outputs of a step
                continue
            if store.key not in self.call.exit.pending and store.loop is None and store.keyed is None:
                continue
            if store.kind == "carry" and self._is_overwritten(store, store.place):
                continue
            if any(test_value(test, self._passed) is False for test in store.tests):
                continue
            count += 1
            self._lift(store)

    def _passed(self, test: ir.Expr) -> bool | None:
        """The value of a flag that this call passes as a literal; None if it is unknown."""
        const = self.call.bound[test.id].const if isinstance(test, ir.Name) and test.id in self.call.bound else None
        return const if isinstance(const, bool) else None

    def _is_overwritten(self, store: Store, place: Path) -> bool:
        """Whether the place's content at the callee's exit does not depend on its previous content."""
        if place not in self.callee.graphs.closure(store.value.src):
            return True
        content = self.call.exit.sym.get(place)
        if content is None or not content.kinds & ~CONTAINER:
            return False
        return place not in self.callee.graphs.closure(tensors_within(self.callee, self.call.exit, content).src)

    def _lift(self, store: Store) -> None:
        place = store.place
        assert isinstance(place, Path)
        reached = self.callee.graphs.closure(store.entering.src)
        passed = not self._made_inside(store, reached)
        incoming = self.call.value(store.entering.but(objs=EMPTY, syms=store.entering.syms - {place, place.then("[]")}))
        if not incoming.kinds:
            return
        whole = self._of_starred(reached) or incoming
        record = store.kind == "retain" and self._is_record(whole)
        parts = parts_of(self.fn, self.state, whole) if record else {}
        parts = parts or {name: self.call.value(part) for name, part in store.parts.items()}
        sure_part = any(has_graph_for_sure(tensors_within(self.fn, self.state, part)) for part in parts.values())
        if incoming.objs and not incoming.src:
            incoming = tensors_within(self.fn, self.state, incoming)  # an argument that is a dict of tensors
        trace = (
            Step(
                store.site,
                f"`{store.place_text}` keeps `{store.text}`"
                if store.kind == "retain"
                else f"`{store.place_text}` is computed from its previous value and `{store.text}`",
            ),
            *store.trace,
        )
        for spot in self._places(place, store):
            retains = store.kind == "retain"
            made = self._retained(store, spot, incoming, parts) if retains else self._carried(store, spot, incoming)
            if made is not None:
                made.trace = trace
                made.record = made.record or record
                made.sure_part = made.sure_part or sure_part
                self._copy_facts(made, store, passed=passed)

    def _retained(self, store: Store, spot: Spot, incoming: V, parts: dict[str, V]) -> Store | None:
        growing, keyed = self._keyed(store)
        if store.how == "key" and not growing and (keyed is None or not isinstance(spot.place, Path)):
            return None  # its keys recur, as far as is known
        made = note_store(
            self.fn,
            self.state,
            store.how,
            spot,
            incoming,
            self.call.at,
            self._argument(store),
            tag=(*self.call.key, store.key),
            parts=parts,
            growing=growing,
        )
        if made is not None:
            made.keyed = keyed
        return made

    def _keyed(self, store: Store) -> tuple[tuple[LoopState, ...] | None, tuple[str, str] | None]:
        """For a store under keys that identify samples, or that the caller counts: the loops of the caller each round
        of which has new ones, and the caller's own parameter that has them. No loops at all for a store of another
        kind."""
        if store.keyed is None:
            return None, None
        if store.keyed == EACH_CALL:
            return tuple(self.fn.loops), EACH_CALL
        name, member = store.keyed
        function, expr = self.callee.function, self.call.expr
        params = [param.name for param in function.params]
        if expr is None or name not in params:
            return (), None
        given = argument(expr, params.index(name) - int(function.takes_self), name)
        if given is not None and member:
            given = ir.Subscript(given.at, given, ir.Const(given.at, "str", member))
        if given is None:
            return (), None
        growing = identified_by(self.fn, given, name if not member else "") or counted_by(self.fn, given)
        return growing, None if growing else by_parameter(self.fn, given)

    def _carried(self, store: Store, spot: Spot, incoming: V) -> Store | None:
        assert isinstance(store.place, Path)
        # the place's content before the call; if this iteration created it, no earlier iteration is reached
        marks = self.call.graph_of(store.place) if store.place.steps else own_sources(self.fn, spot.place)
        if store.how == "average" and incoming.size == SOME_SIZE and self._is_of_numbers(store):
            incoming = incoming.but(size=SCALAR)
        return note_carry(
            self.fn,
            self.state,
            store.how,
            spot,
            incoming.but(src=incoming.src | marks),
            incoming,
            self.call.at,
            self._argument(store),
            tag=(*self.call.key, store.key),
        )

    def _copy_facts(self, made: Store, store: Store, *, passed: bool) -> None:
        """Copy the facts about the callee's store to the lifted one. ``passed``: the stored value is an argument."""
        if store.objs:
            assert isinstance(store.place, Path)
            made.objs = self.call.resolve(store.place).objs
        made.lifted = store.lifted + 1
        made.guessed = made.guessed or store.guessed
        made.evaluates = made.evaluates or store.evaluates
        made.record = made.record or store.record
        made.vague = made.vague or store.vague
        made.loose = made.loose or carried_loosely(self.callee, store)
        made.cleared = made.cleared or store.cleared
        made.origin = "argument" if passed else "callee"
        if not passed:
            called = text(self.call.expr.func) if self.call.expr else "the call"
            step = Step(self.fn.site(self.call.at), f"{called} runs in each iteration")
            made.site, made.trace, made.text = store.site, (step, *store.trace), store.text

    def _of_starred(self, reached: frozenset[Source]) -> V | None:
        """The join of a starred parameter's arguments if a part of it is stored: ``self.rows.append(Row(*args))``. None
        if no starred parameter is stored."""
        for param in self.callee.function.params:
            if param.kind in ("star", "double-star") and param.name in self.call.bound:
                name = f"p:{param.name}"
                if any(isinstance(item, Path) and item.root == name for item in reached):
                    return self.call.bound[param.name]
        return None

    def _is_record(self, given: V) -> bool:
        """Whether the argument that the callee stores is a tuple, list or dict that the caller has built:
        ``memory.put((reward, log_prob))``."""
        return any(obj.kind in ("tuple", "list", "dict") and obj.fields for _, obj in self.state.objects(given))

    def _made_inside(self, store: Store, reached: frozenset[Source]) -> bool:
        """Whether the callee itself recorded the stored graph: the finding then belongs at the callee's store."""
        place = store.place
        value = store.entering
        sources = frozenset(item for item in value.src if item != place)
        if self.callee.graphs.attached(sources, lambda path: None)[0] == "yes":
            return True
        computed = bool(value.store) and not value.syms  # indices, or detached values
        return takes_activations(self.fn.analyser, self.callee) and (
            computed or any(isinstance(item, Path) and item != place for item in reached)
        )

    def _argument(self, store: Store) -> str:
        """The source text of the argument that carries the graph in."""
        if self.call.expr is None:
            return store.text
        reached = self.callee.graphs.closure(store.entering.src)
        roots = {
            item.root[2:]
            for item in reached
            if isinstance(item, Path) and item.root.startswith("p:") and item != store.place
        }
        with_graph = {name for name in roots if name in self.call.bound and self._has_graph(name)}
        roots = with_graph or roots
        params = [param.name for param in self.callee.function.params]
        offset = int(self.callee.function.takes_self)  # the receiver (``meter``) precedes the arguments
        for position, name in enumerate(params[offset:]):
            if name in roots and position < len(self.call.expr.args):
                return text(self.call.expr.args[position + self._starred(name)]) + _attribute(name, reached)
        for word in self.call.expr.keywords:
            if word.name in roots or (word.name and params and len(roots) == 1 and next(iter(roots)) not in params):
                return text(word.value)
        return (
            text(self.call.expr.keywords[0].value)
            if len(self.call.expr.keywords) == 1 and not self.call.expr.args[offset:]
            else text(self.call.expr)
        )

    def _is_of_numbers(self, store: Store) -> bool:
        """Whether every argument whose graph enters the stored value is a 0-d tensor."""
        reached = self.callee.graphs.closure(store.entering.src)
        names = {item.root[2:] for item in reached if isinstance(item, Path) and item.root.startswith("p:")}
        own = store.place.root[2:] if isinstance(store.place, Path) else ""
        given = [self.call.bound.get(name, UNKNOWN_VALUE) for name in names - {own}]
        return bool(given) and all(tensors_within(self.fn, self.state, one).size == SCALAR for one in given)

    def _starred(self, name: str) -> int:
        """Which of the arguments that a starred parameter takes has a graph, the first one where none has; 0 for
        another parameter."""
        if not any(param.name == name and param.kind == "star" for param in self.callee.function.params):
            return 0
        taken = self.call.bound.get(name, NOTHING)
        members = [one for _, held in self.state.objects(taken) for one in held.ordered]
        return next((at for at, member in enumerate(members) if self._is_attached(member)), 0)

    def _has_graph(self, name: str) -> bool:
        if name not in self._graphs:
            self._graphs[name] = self._is_attached(self.call.bound[name])
        return self._graphs[name]

    def _is_attached(self, value: V) -> bool:
        sources = tensors_within(self.fn, self.call.before, value).src
        return self.fn.graphs.attached(sources, lambda path: None)[0] == "yes"

    def _places(self, place: Path, store: Store) -> list[Spot]:
        """The callee's place in the caller's terms."""
        found: list[Spot] = []
        if store.kind == "retain" and not store.objs:
            target = self.call.resolve(place)
            found += [
                Spot(key, "local", self._shown(place, store))
                for key in target.objs
                if key in self.state.heap and not self.state.heap[key].bounded
            ]
            found += [
                self._symbolic(path, place, store)
                for path in sorted(target.syms)
                if not any(ref.kind == "bounded" for ref in target.refs)
            ]
            if not found and place.steps and place.steps[-1].startswith("["):
                # the callee makes the member on demand (setdefault), so the container around it grows
                return self._places(Path(place.root, place.steps[:-1]), store)
            return found
        if not place.steps:
            if place.root.startswith("p:"):
                return []
            if place.root.startswith("c:"):
                around = self.callee.function.enclosing
                if around is not None and around.key == self.fn.function.key:
                    return [Spot(("var", place.root[2:]), "local", store.place_text)]
            return [Spot(place, store.place_kind, store.place_text)]
        parent = self.call.resolve(Path(place.root, place.steps[:-1]))
        step = place.steps[-1]
        if place.root.startswith("g:") and not parent.objs and not parent.syms:
            # a class attribute is the same place in every function
            return [Spot(place, store.place_kind, store.place_text)]
        found += [Spot((key, step), "local", self._shown(place, store)) for key in sorted(parent.objs, key=repr)]
        if step.startswith("."):
            held = sorted(made_places(self.fn, parent, step[1:]))
        else:
            held = sorted(path.then(step) for path in parent.syms)
        found += [self._symbolic(path, place, store) for path in held]
        return found[:4]

    def _symbolic(self, here: Path, place: Path, store: Store) -> Spot:
        """A symbolic place in the caller. One in a module that the caller made is named by the receiver."""
        return Spot(here, kind_of(here), self._shown(place, store) if here.root.startswith(MADE) else here.text)

    def _shown(self, place: Path, store: Store) -> str:
        """The text of a callee's place in the caller: ``meter.sum`` for ``self.sum``."""
        if place.root == "p:self" and self.call.expr is not None and self.callee.function.takes_self:
            func, method = self.call.expr.func, self.callee.function.name
            if method in ("__call__", "forward") and not (isinstance(func, ir.Attr) and func.name == method):
                receiver = func  # the call is on the object itself
            elif isinstance(func, ir.Attr):
                receiver = func.value
            else:
                return store.place_text
            return text(receiver) + "".join("" if step == "[]" else step for step in place.steps)
        return store.place_text


def _attribute(name: str, reached: frozenset[Source]) -> str:
    """The attribute of an argument, if the callee stores only that: ``self.losses.append(trainer.loss)``. "" if it
    stores more."""
    steps = {item.steps for item in reached if isinstance(item, Path) and item.root == f"p:{name}"}
    only = next(iter(steps)) if len(steps) == 1 else ()
    return "".join(only) if all(step.startswith(".") for step in only) else ""


def takes_activations(analyser: Any, callee: Summary) -> bool:
    """Whether the function is a module's forward, whose arguments are taken to have a graph."""
    function = callee.function
    return function.cls is not None and function.name == "forward" and bool(analyser.program.is_module(function.cls))
