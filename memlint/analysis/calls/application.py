"""Instantiation of a summary at a call site: what the callee returns, stores, frees and retains, in the caller's
terms."""

from __future__ import annotations

import itertools

from memlint.analysis.calls.lifted_runs import lift_runs
from memlint.analysis.calls.lifted_stores import Lifting
from memlint.analysis.calls.translation import Translation
from memlint.analysis.domain.declared_values import as_annotated
from memlint.analysis.domain.recorded_modes import mode_keys
from memlint.analysis.domain.state import State, without_tag
from memlint.analysis.domain.summary.effects import Backward
from memlint.analysis.domain.summary.function_state import FunctionState
from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.domain.values import (
    CONTAINER,
    EMPTY,
    MODULE,
    NONE_VALUE,
    NOTHING,
    PER_BATCH,
    TENSORS,
    UNKNOWN,
    Path,
    Source,
    Sources,
    V,
    join,
    join_all,
    ordered,
)
from memlint.analysis.syntax.syntax import dotted
from memlint.analysis.transfer import user_containers
from memlint.analysis.transfer.assignment import write_attribute
from memlint.analysis.transfer.heap import make, stream_of
from memlint.analysis.transfer.held_values import tensors_within
from memlint.analysis.transfer.library import standard_library
from memlint.analysis.transfer.modules.optimizer_parameters import ANY, add_keys
from memlint.analysis.transfer.modules.touched_parameters import keys_of
from memlint.analysis.transfer.stores.class_places import MADE, made_places
from memlint.analysis.transfer.stores.emptied_places import drop_stores, drop_stores_of_call
from memlint.ir import nodes as ir

#: the most attribute writes of a callee that a call applies
MAX_WRITES = 256


class Application(Translation):
    """One instantiation of a callee's summary in a caller's state."""

    # ---------------------------------------------------------------------------- effects

    def effects(self) -> None:
        """Apply the callee's attribute writes, freed graphs, module modes and evidence to the caller's state."""
        self.fn.spend((len(self.exit.sym) + len(self.exit.freed_may)) // 4 + self.callee.width // 4)
        if len(self.exit.sym) > MAX_WRITES:
            self.fn.cut_short = True
        writes = [(path, self.value(value)) for path, value in itertools.islice(self.exit.sym.items(), MAX_WRITES)]
        for path, value in writes:
            self._write(path, value)
        self._cleared()
        outward = self.callee.outward
        for source, certain in outward.freed:
            self._free(source, certain)
        for evidence in self.callee.graphs.evidence:
            self._evidence(evidence)
        for paths, keeps in outward.reached:
            here = {mark for path in paths for mark in self.graph_of(path)}
            if here:
                reached = self.fn.graphs.closure(here)
                site, tests = self.fn.site(self.at), tuple(self.fn.tests)
                lazy = self.callee.notes.gives_batches
                self.fn.backwards.append(Backward(reached, self.fn.loop_ids, site, tests, keeps, lazy))
            elif paths:
                if any(path.root.startswith("c:") and self.resolve(path).may_be(UNKNOWN) for path in paths):
                    self.fn.notes.blind_backward = True  # a closure reads an unknown variable, perhaps of the caller
                self.fn.notes.blind_calls.add(self.at)
                self.fn.notes.blind_at.add(self.at)
            else:
                self.fn.notes.trains_below = True
        self.fn.notes.trains_below |= self.callee.notes.trains_below
        for path, scored in outward.escaped:
            self.fn.escape(self.graph_of(path), scored=scored)
        for path in outward.logged:
            self.fn.log(self.fn.graphs.closure(self.graph_of(path)))
        for path in outward.left:
            self.fn.leave(self.fn.graphs.closure(self.graph_of(path)))
        for drawn in self.callee.notes.drawn:
            standard_library.note_drawn(self.fn, self.resolve(drawn))
        if self.callee.cut_short:  # without a complete summary, the arguments may have gone anywhere
            for value in self.bound.values():
                self.fn.leave(self.fn.graphs.closure(tensors_within(self.fn, self.before, value).src))
        for path in outward.used:
            self.fn.used |= self.graph_of(path)
        for path in outward.arrays if not self.fn.handlers else ():
            self.fn.notes.arrays.append((self.graph_of(path), tuple(self.fn.tests), False))
        self._modes()
        self.fn.notes.owned += [self._owned(entry) for entry in self.callee.notes.owned]
        if ANY not in self.fn.notes.given:
            add_keys(self.fn.notes.given, self.callee.notes.given & {ANY})
            for path in outward.given:
                add_keys(self.fn.notes.given, self._named_here(path))
        add_keys(self.fn.notes.switched, self._touched(self.callee.notes.switched, unknown=True))
        add_keys(self.fn.notes.learned, self._touched(self.callee.notes.learned, unknown=False))
        if self.callee.notes.gradients:
            self.fn.notes.add_gradients_of(self.callee.notes, self.at)

    def _modes(self) -> None:
        """Apply the modes that the callee sets: on modules that the caller knows, and on those that the callee made and
        returns or stores."""
        for key, mode in self.exit.modes.items():
            inner = without_tag(key)
            if not isinstance(inner, Path):
                continue
            members = self._members_here(inner) if inner is not key else []
            for outer in (*self._named_here(inner), *members):
                self.state.modes[outer if inner is key else (key[0], outer)] = mode
        visible = self._modules_in(self.callee.result) if self.exit.modes and self.callee.result is not None else EMPTY
        for value in self.exit.sym.values() if self.exit.modes else ():
            if value.kinds & (MODULE | CONTAINER):
                visible |= self._modules_in(value)
        for key, mode in self.exit.modes.items() if visible else ():
            inner = without_tag(key)
            made = self._made_inside(inner, visible)
            if made is not None:
                self.state.modes[made if inner is key else (key[0], made)] = mode

    def _touched(self, keys: set[Source], *, unknown: bool) -> set[Source]:
        """The caller's keys of the modules whose parameters the callee touches. ``unknown``: include `ANY` for an
        argument that may be any module."""
        found: set[Source] = set()
        for key in keys:
            if not isinstance(key, Path):
                found.add(("made", self._made(key[1])) if isinstance(key, tuple) and key[0] == "made" else key)
                continue
            value = self.resolve(key)
            here, whole = keys_of(value), key
            while not here and whole.steps:  # the caller does not distinguish the part from its whole
                whole = whole.around
                here = keys_of(self.resolve(whole))
            if not here and unknown and value.kinds & (MODULE | UNKNOWN):
                here = {ANY}
            found |= here
            found.update(self._named_here(key))
        return found

    def _modules_in(self, value: V, depth: int = 3) -> Sources:
        """The storages of a callee's value and of the values that it holds (``return model, teacher``)."""
        found = value.store
        for _, obj in self.exit.objects(value) if depth else ():
            for item in obj.members:
                found |= self._modules_in(item, depth - 1)
        return found

    def _made_inside(self, key: Source, visible: Sources) -> Source | None:
        """The caller's key of a module that the callee made, or of a part of one, if the callee returns or stores it;
        else None."""
        if not isinstance(key, tuple) or isinstance(key, Path) or key[0] != "made":
            return None
        item, names = key[1], []
        while item not in visible and isinstance(item, tuple) and not isinstance(item, Path) and item[0] == "part":
            names.append(item[2])
            item = item[1]
        if item not in visible:
            return None
        here = self._made(item)
        for name in reversed(names):
            here = ("part", here, name)
        return ("made", here)

    def _owned(self, entry: Sources | None) -> Sources | None:
        """The caller's keys of the parameters that an optimizer of the callee owns; None if unknown."""
        if entry is None:
            return None
        found: set[Source] = set()
        for key in entry:
            if isinstance(key, Path):
                here = self._named_here(key)
                if not here:
                    return None
                found.update(here)
            elif isinstance(key, tuple) and key[0] == "made":
                found.add(("made", self._made(key[1])))
        return frozenset(found)

    def _named_here(self, key: Path) -> list[Source]:
        """The caller's keys of a module that the callee names by a symbol."""
        root = self._root(key.root)
        found: list[Source] = [Path(base.root, base.steps + key.steps) for base in root.syms]
        found += [each for each in mode_keys(self.resolve(key), None) if each not in found]
        given = self._argument_of(key.root[2:]) if key.root.startswith("p:") else None
        place = dotted(given) if given is not None else ""
        if place:
            found.append(("v", place + "".join(step for step in key.steps if step.startswith("."))))
        return found

    def _members_here(self, key: Path) -> list[Source]:
        """The caller's keys of all members of a list argument; empty for any other path."""
        if key.steps != ("[]",):
            return []
        lists = [obj for item in ordered(self._root(key.root).objs) if (obj := self.before.heap.get(item)) is not None]
        parts = [part for obj in lists if obj.kind in ("list", "tuple") for part in obj.members]
        known = [part for part in parts if part.kinds & (MODULE | UNKNOWN)]
        return [each for part in known for each in mode_keys(part, None)]

    def _argument_of(self, name: str) -> ir.Expr | None:
        """The expression that this call passes for a parameter; None if it is unknown."""
        if self.expr is None:
            return None
        params = [param.name for param in self.callee.function.params]
        offset = 1 if self.callee.function.takes_self else 0
        if offset and params[:1] == [name]:
            return self.expr.func.value if isinstance(self.expr.func, ir.Attr) else None
        position = params.index(name) - offset if name in params else -1
        if 0 <= position < len(self.expr.args):
            return self.expr.args[position]
        return next((word.value for word in self.expr.keywords if word.name == name), None)

    def _cleared(self) -> None:
        """Apply what the callee empties on some path. What it empties on all paths is among its writes."""
        places: dict[bool, set[Source]] = {True: set(), False: set()}
        for path, flagged in itertools.islice(self.callee.notes.cleared.items(), MAX_WRITES):
            held = self.resolve(path)
            places[flagged] |= {*held.objs, *held.syms}
            if path.steps:
                around, step = self.resolve(Path(path.root, path.steps[:-1])), path.steps[-1]
                places[flagged] |= {sym.then(step) for sym in around.syms}
                places[flagged] |= made_places(self.fn, around, step[1:]) if step.startswith(".") else EMPTY
        for flagged, emptied in places.items():
            if emptied:
                drop_stores_of_call(self.fn, self.state, frozenset(emptied), flagged=flagged)

    def _write(self, path: Path, value: V) -> None:
        if path.root.startswith(MADE):
            return None  # the callee's own module
        if not path.steps:
            if path.root.startswith("c:"):
                name = path.root[2:]
                around = self.callee.function.enclosing
                if around is not None and around.key == self.fn.function.key:
                    self.state.env[name] = join(self.before.env.get(name, NOTHING), value)
                    return None
            if path.root.startswith("p:"):
                return self._in_place(path, value)
            variable = path.root.rsplit(":", 1)[1]
            if self.fn.function.node is None and path.root == f"g:{self.fn.module.key}:{variable}":
                self.state.env[variable] = value
            self.state.sym[path] = value
            return None
        parent = self.resolve(Path(path.root, path.steps[:-1]))
        step = path.steps[-1]
        if not parent.objs and not parent.syms:
            if value.src and parent.kinds & (TENSORS | UNKNOWN):
                self._into_argument(path, value)
            # an unresolved object gets the graph, and may run a backward through it
            if not parent.is_only(TENSORS):
                self.fn.leave(self.fn.graphs.closure(tensors_within(self.fn, self.state, value).src))
        if step.startswith("."):
            write_attribute(self.fn, self.state, parent, step[1:], value)
            return None
        emptied = not value.kinds
        for key, obj in self.state.objects(parent):
            if emptied:
                self.state.heap[key] = obj.emptied()
            elif obj.kind == "instance" and not parent.kinds & CONTAINER:
                continue
            elif step == "[]":
                # the list keeps its old members unless the callee replaced all of them
                added = path in self.exit.sym[path].src
                self.state.heap[key] = obj.with_elem(join(obj.elem, value)) if added else obj.emptied().with_elem(value)
            else:
                self.state.heap[key] = obj.with_field(step[1:-1], value)
        for sym in ordered(parent.syms):
            place = sym.then(step)
            self.state.sym[place] = NOTHING if emptied else value
        if emptied:
            drop_stores(self.fn, self.state, parent.objs | parent.syms)
        return None

    def _in_place(self, path: Path, value: V) -> None:
        """Apply an in-place change of a tensor parameter: the argument's variable has the new graph."""
        name = path.root[2:]
        argument = self._argument_of(name) if name != self.callee.function.own_name else None
        if argument is None:
            return
        place = dotted(argument)
        if place and place in self.state.env:
            self.state.env[place] = self.state.env[place].but(src=self.state.env[place].src | value.src)
        for sym in self.bound.get(name, NOTHING).syms:
            self.state.sym[sym] = value

    def _into_argument(self, path: Path, value: V) -> None:
        """Add a graph that the callee stored into an argument of unknown content (a batch)."""
        argument = self._argument_of(path.root[2:]) if path.root.startswith("p:") else None
        if argument is not None:
            user_containers.store_anywhere(self.fn, self.state, argument, value.src, self.at)

    def _free(self, path: Path, must: bool) -> None:
        reached = self.fn.graphs.closure(self.graph_of(path))
        self.state.freed_may |= reached
        if must:
            self.state.freed_must |= reached

    def _evidence(self, evidence: frozenset[Source]) -> None:
        graphs = self.callee.graphs
        reached = evidence if all(isinstance(item, Path) for item in evidence) else graphs.closure(evidence)
        if any(node.unknown or node.definite for node in graphs.nodes_of(reached)):
            return
        values = [self.resolve(item) for item in reached if isinstance(item, Path)]
        src = frozenset[Source]().union(*(value.src for value in values))
        # a container that looks empty here is filled by code that cannot be followed, perhaps with the graph
        if src and all(value.kinds for value in values):
            self.fn.graphs.evidence.add(src)


def apply(fn: FunctionState, state: State, callee: Summary, bound: dict[str, V], at: int, expr: ir.Call | None) -> V:
    """Instantiate a callee's summary in the caller's state. Returns the value of the call."""
    work = Application(fn, state, callee, bound, at, expr)
    fn.applying += 1
    try:
        if callee.function.is_generator:
            items = join_all(work.value(value) for value, _ in callee.yields)
            result = make(fn, state, stream_of(work.key), "list", items)
            if callee.notes.gives_batches:
                result = result.but(refs=frozenset((PER_BATCH,)))
        else:
            result = work.value(callee.result) if callee.result is not None and callee.result.kinds else NONE_VALUE
        work.effects()
        lift_runs(work)
        Lifting(work).stores()
        work.link_ancestors()
        if callee.leaves is not None:
            state.grad = callee.leaves
    finally:
        fn.applying -= 1
    return as_annotated(fn, callee.function, result, expr)
