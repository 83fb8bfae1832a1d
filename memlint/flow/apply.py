"""A summary at a call: what the callee returns, stores, frees and retains, in terms of the caller's values."""

from __future__ import annotations

import itertools
import zlib
from typing import Any

from memlint.flow import library
from memlint.flow.events import PlaceKind, Step
from memlint.flow.frame import Frame, ModelRun, Store
from memlint.flow.graphs import Node
from memlint.flow.heap import deep, elements_of, make, read_attribute, read_symbol
from memlint.flow.modes import frozen_of, mode_of
from memlint.flow.owner import ANY, gave
from memlint.flow.state import AMBIENT, OFF, ON, Obj, State
from memlint.flow.stores import carried_loosely, forget, kind_of, note_carry, note_store
from memlint.flow.syntax import dotted, text
from memlint.flow.values import (
    ACCELERATOR,
    ANYWHERE,
    CONTAINER,
    DATA,
    DATA_VALUE,
    EMPTY,
    MODULE,
    NONE,
    NONE_VALUE,
    NOTHING,
    TENSORS,
    UNKNOWN,
    UNKNOWN_VALUE,
    Path,
    Source,
    Sources,
    V,
    join,
    join_all,
    ordered,
)
from memlint.ir import nodes as ir

#: how many stores of callees a function hands on to its callers, and through how many calls
MAX_LIFTED, MAX_DEPTH = 48, 6
#: objects and attribute writes of a callee that a call takes over, and objects that a function knows of at once
MAX_OBJECTS, MAX_WRITES, MAX_HEAP = 256, 256, 4_000
#: the same of model runs
MAX_RUNS, MAX_RUN_DEPTH = 4, 3


class Application:
    """One instantiation of a callee's summary in a caller's state."""

    def __init__(
        self, frame: Frame, state: State, callee: Frame, bound: dict[str, V], at: int, expr: ir.Call | None
    ) -> None:
        self.frame = frame
        self.state = state
        self.before = frame.fork(state)
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

    # ---------------------------------------------------------------------------- symbols

    def resolve(self, path: Path) -> V:
        """What a callee's symbol is here, before the call."""
        known = self._resolved.get(path)
        if known is None:
            known = self._resolved[path] = self._resolve(path)
        return known

    def _resolve(self, path: Path) -> V:
        if not path.steps:
            return self._root(path.root)
        value = self.resolve(Path(path.root, path.steps[:-1]))
        if not value.kinds:
            return UNKNOWN_VALUE
        step = path.steps[-1]
        if step.startswith("."):
            return read_attribute(self.frame, self.before, value, step[1:], None)
        if step == "[]":
            return elements_of(self.frame, self.before, value)
        return self._member(value, step[1:-1])

    def graph_of(self, path: Path) -> frozenset[Source]:
        """The graph sources of all tensors in what a symbol is here."""
        known = self._graphs.get(path)
        if known is None:
            known = self._graphs[path] = deep(self.frame, self.before, self.resolve(path)).src
        return known

    def _member(self, value: V, name: str) -> V:
        from memlint.flow.heap import read_item

        fake = ir.Subscript(self.at, ir.Name(self.at, "_"), ir.Const(self.at, "str", name))
        const: object = int(name) if name.lstrip("-").isdigit() else name
        return read_item(self.frame, self.before, value, V(DATA_VALUE.kinds, const=const), fake)

    def _root(self, root: str) -> V:
        kind, name = root.split(":", 1)
        if kind == "p":
            return self.bound.get(name, UNKNOWN_VALUE)
        if kind == "c":
            from memlint.flow.scope import lookup

            around = self.callee.function.enclosing
            if around is not None and around.key == self.frame.function.key:
                return lookup(self.frame, self.before, name)
            path = Path(root)
            return read_symbol(self.frame, self.before, path)
        path = Path(root)
        if kind == "g" and root.rsplit(":", 1)[0] == f"g:{self.frame.module.key}" and self.frame.function.node is None:
            variable = root.rsplit(":", 1)[1]
            if variable in self.before.env:
                return self.before.env[variable]
        if path in self.before.sym:
            return self.before.sym[path]
        if kind == "g":
            module, variable = root[2:].rsplit(":", 1)
            from memlint.flow.scope import symbolic

            fact = self.frame.analyser.global_value(
                "value", (self.frame.analyser.program.module(module), variable), frame=self.frame
            )
            return symbolic(fact, path)
        return V(UNKNOWN, frozenset((path,)), syms=frozenset((path,)))

    # ---------------------------------------------------------------------------- values

    def value(self, value: V, depth: int = 4) -> V:
        """A callee's value, here."""
        result = NOTHING
        for path in ordered(value.syms):
            result = join(result, self.resolve(path))
        if value.device != ANYWHERE and value.syms and result.kinds:
            # the callee moved what it was given
            result = result.but(device=value.device & ~ANYWHERE | (result.device if value.device & ANYWHERE else 0))
        own = value.src - value.syms
        kinds = value.kinds & ~UNKNOWN if value.syms else value.kinds
        if kinds & CONTAINER and value.syms and not value.objs:
            kinds &= ~CONTAINER
        if result.kinds and not own and not (kinds & ~result.kinds) and not value.objs:
            return result
        if kinds or own or value.objs:
            objs = frozenset(self.object(key, depth) for key in value.objs) if depth else EMPTY
            src = self.sources(own)
            for item in src if value.bare else ():
                if item in self.frame.graphs.nodes:
                    self.frame.graphs.nodes[item].partial = True
            refs = value.refs
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
            )
            result = join(result, rest) if rest.kinds else result
        return result if result.kinds else (UNKNOWN_VALUE if value.kinds else NOTHING)

    def _placed(self, value: V) -> int:
        """The device of a callee's value: what it computed is where its arguments are, if it says nothing else."""
        if value.device != ANYWHERE or not value.kinds & TENSORS:
            return value.device
        if self._device is None:
            from memlint.flow.placement import device_of

            self._device = device_of(
                self.frame,
                self.before,
                [given for given in self.bound.values() if given.kinds & (TENSORS | MODULE | CONTAINER)],
            )
        return self._device if self._device == ACCELERATOR else ANYWHERE

    def _made_here(self, value: V) -> Sources:
        """The storages of a callee's value; modules that it made stay apart from each other."""
        if not value.store:
            return EMPTY
        if not value.kinds & (MODULE | UNKNOWN):
            return frozenset((self.key,))
        return frozenset(self._made(item) for item in value.store)

    def _made(self, item: Source) -> Source:
        nested = item
        for _ in range(MAX_RUN_DEPTH):
            if not (isinstance(nested, tuple) and len(nested) > MAX_RUN_DEPTH):
                return (*self.key, item)
            nested = nested[-1]
        return self.key

    def object(self, key: Source, depth: int) -> Source:
        """A callee's object, here."""
        if key in self._objects:
            return self._objects[key]
        self.frame.spend(1)
        if len(self._objects) >= MAX_OBJECTS or len(self.state.heap) >= MAX_HEAP:
            self.frame.cut_short = True
            key = None
        new = (*self.key, key)
        self._objects[key] = new
        obj = self.exit.heap.get(key)
        if obj is None:
            self.state.heap[new] = Obj("list", NOTHING, {}, self.frame.loop_ids)
        else:
            self.state.heap[new] = Obj(
                obj.kind,
                self.value(obj.elem, depth - 1) if obj.elem.kinds else NOTHING,
                {name: self.value(item, depth - 1) for name, item in obj.fields.items()},
                self.frame.loop_ids,
                obj.bounded,
                obj.cls,
                obj.text,
            )
        self.state.fresh |= {new}
        return new

    def sources(self, sources: frozenset[Source]) -> frozenset[Source]:
        found: set[Source] = set()
        for source in sources:
            found |= self.source(source)
        return frozenset(found)

    def source(self, source: Source) -> frozenset[Source]:
        """A callee's graph source, here: at most a few nodes of our own stand for all of the callee's."""
        if isinstance(source, Path):
            return self.graph_of(source)
        if source in self._nodes:
            return self._nodes[source]
        graphs = self.callee.graphs
        if source not in graphs.nodes:
            self._nodes[source] = EMPTY
            return EMPTY
        if not self.frame.spend(len(graphs.ancestry(source)) // 16):
            return self._unfollowed(source)
        definite: Node | None = None
        unknown: Node | None = None
        model = False
        parents: frozenset[Source] = EMPTY
        certain: frozenset[Source] = EMPTY
        sure = graphs.sure(frozenset((source,)))
        for item in graphs.ancestry(source):
            if isinstance(item, Path):
                parents |= self.graph_of(item)
                certain |= self.graph_of(item) if item in sure else EMPTY
                continue
            node = graphs.nodes.get(item)
            if node is None or item not in sure:
                continue
            if node.ambient and self.state.grad == OFF:
                continue
            if node.definite and node.model and node.callee is not None and self._is_frozen(node.callee):
                continue
            if node.definite:
                definite = _shown_first(definite, node)
                model = model or node.model
            elif node.unknown and (node.callee is None or not self._known(node.callee)):
                unknown = node
            elif node.unknown and node.callee is not None and self._is_model(node.callee):
                definite, model = _shown_first(definite, node), True
        own = graphs.nodes[source]
        if own.ambient and self.state.grad == OFF:
            self._nodes[source] = EMPTY
            return EMPTY
        if definite is None and source in self.proved:
            definite = own
        if definite is None and unknown is None and not parents:
            self._nodes[source] = EMPTY
            return EMPTY
        tips = frozenset((source,))
        fate = "freed" if tips <= self.exit.freed_must else "some" if tips & self.exit.freed_may else "live"
        tag = "d" if definite else "u" if unknown else "o"
        # of one kind, but from different arguments: graphs of their own
        roots = sorted(item for item in graphs.ancestry(source) if isinstance(item, Path))
        key = (*self.key, tag, fate, source if tag == "u" else zlib.crc32(repr(roots).encode()) if roots else "")
        shown = definite or own
        ambient = (definite or own).ambient and not self.state.grad & ON and bool(self.state.grad & AMBIENT)
        via = ((self.callee.site(shown.at), shown.what), *shown.via)
        self.frame.graphs.record(
            key,
            Node(
                self.at,
                text(self.expr.func) if self.expr is not None else shown.what,
                definite is not None,
                unknown is not None and definite is None,
                ambient,
                parents,
                None,
                via[:4],
                model,
                own.guess,
                own.leaf,
                loops=self.frame.loop_ids,
                loose=parents - certain,
            ),
        )
        one = frozenset((key,))
        self.state.freed_must -= one
        self.state.freed_may -= one
        if fate == "freed":
            self.state.freed_must |= one
        if fate != "live":
            self.state.freed_may |= one
        self._nodes[source] = one
        return one

    def _unfollowed(self, source: Source) -> frozenset[Source]:
        """A graph that is too large to follow: one node for all of them, of which nothing is known."""
        key = (*self.key, "cut")
        self.frame.graphs.record(key, Node(self.at, self.key[-1], unknown=True, loops=self.frame.loop_ids))
        self._nodes[source] = frozenset((key,))
        return self._nodes[source]

    def _known(self, path: Path) -> bool:
        value = self.resolve(path)
        return bool(value.kinds) and not value.kinds & UNKNOWN

    def _is_frozen(self, path: Path) -> bool:
        return frozen_of(self.frame.analyser, self.before, self.resolve(path), None) is True

    def _is_model(self, path: Path) -> bool:
        return bool(self.resolve(path).kinds & MODULE)

    def kinship(self) -> None:
        """A graph that another one was computed from is freed with it: its node here is a parent of the other's."""
        lifted = {item: nodes for item, nodes in self._nodes.items() if nodes}
        if len(lifted) > MAX_KIN:
            return
        for item, nodes in lifted.items():
            older = self.callee.graphs.ancestry(item) & lifted.keys() - {item}
            parents = EMPTY.union(*(lifted[other] for other in older)) - nodes
            for key in nodes if parents else ():
                node = self.frame.graphs.nodes.get(key)
                if node is not None:
                    node.parents |= parents

    # ---------------------------------------------------------------------------- effects

    def effects(self) -> None:
        """Attribute writes, freed graphs, modes and evidence of the callee."""
        self.frame.spend((len(self.exit.sym) + len(self.exit.freed_may)) // 4)
        if len(self.exit.sym) > MAX_WRITES:
            self.frame.cut_short = True
        writes = [(path, self.value(value)) for path, value in itertools.islice(self.exit.sym.items(), MAX_WRITES)]
        for path, value in writes:
            self._write(path, value)
        for source in self.exit.freed_may:
            if isinstance(source, Path):
                self._free(source, source in self.exit.freed_must)
        for evidence in self.callee.graphs.evidence:
            self._evidence(evidence)
        for reached, _, _ in self.callee.backwards:
            here = {mark for item in reached if isinstance(item, Path) for mark in self.graph_of(item)}
            if here:
                self.frame.backwards.append(
                    (self.frame.graphs.closure(here), self.frame.loop_ids, self.frame.site(self.at))
                )
            elif any(isinstance(item, Path) for item in reached):
                self.frame.notes.blind_backward = True
        for item in self.callee.escaped:
            if isinstance(item, Path):
                self.frame.escape(self.graph_of(item), scored=item not in self.callee.left)
        for drawn in self.callee.notes.drawn:
            library.draws(self.frame, self.resolve(drawn))
        if self.callee.cut_short:  # what it was given may have gone anywhere
            for value in self.bound.values():
                self.frame.left |= self.frame.graphs.closure(deep(self.frame, self.before, value).src)
        for item in self.callee.used:
            if isinstance(item, Path):
                self.frame.used |= self.graph_of(item)
        for key, mode in self.exit.modes.items():
            inner = key[1] if isinstance(key, tuple) and not isinstance(key, Path) and key[0] == "frozen" else key
            if not isinstance(inner, Path):
                continue
            for outer in self._named_here(inner):
                self.state.modes[outer if inner is key else ("frozen", outer)] = mode
        visible = self.callee.result.store if self.callee.result is not None else EMPTY
        for value in self.exit.sym.values():
            if value.kinds & MODULE:
                visible |= value.store
        for item in visible if self.exit.modes else ():
            for tag in ("", "frozen"):
                inside: Source = (tag, ("made", item)) if tag else ("made", item)
                if inside in self.exit.modes:
                    made: Source = ("made", self._made(item))
                    self.state.modes[(tag, made) if tag else made] = self.exit.modes[inside]
        for entry in self.callee.notes.owned:
            self.frame.notes.owned.append(self._owned(entry))
        for key in self.callee.notes.given:
            gave(self.frame, self._named_here(key) if isinstance(key, Path) else [key] if key == ANY else ())
        if self.callee.notes.gradients:
            self.frame.notes.gradients = True

    def _owned(self, entry: Sources | None) -> Sources | None:
        """What an optimizer that the callee makes owns, here."""
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
        """What a module of the callee is known by here."""
        root = self._root(key.root)
        found: list[Source] = [Path(base.root, base.steps + key.steps) for base in root.syms]
        if not key.steps:
            found += [("made", item) for item in root.store]
        given = self._argument_of(key.root[2:]) if key.root.startswith("p:") else None
        place = dotted(given) if given is not None else ""
        if place:
            found.append(("v", place + "".join(step for step in key.steps if step.startswith("."))))
        return found

    def _argument_of(self, name: str) -> ir.Expr | None:
        """The expression that this call passes for a parameter."""
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

    def _write(self, path: Path, value: V) -> None:
        from memlint.flow.assignment import write_attribute

        if not path.steps:
            if path.root.startswith("c:"):
                name = path.root[2:]
                around = self.callee.function.enclosing
                if around is not None and around.key == self.frame.function.key:
                    self.state.env[name] = join(self.before.env.get(name, NOTHING), value)
                    return None
            if path.root.startswith("p:"):
                return self._in_place(path, value)
            variable = path.root.rsplit(":", 1)[1]
            if self.frame.function.node is None and path.root == f"g:{self.frame.module.key}:{variable}":
                self.state.env[variable] = value
            self.state.sym[path] = value
            return None
        parent = self.resolve(Path(path.root, path.steps[:-1]))
        step = path.steps[-1]
        if step.startswith("."):
            write_attribute(self.frame, self.state, parent, step[1:], value)
            return None
        emptied = not value.kinds
        for key in ordered(parent.objs):
            obj = self.state.heap.get(key)
            if obj is None:
                continue
            if emptied:
                self.state.heap[key] = obj.emptied()
            elif obj.kind == "instance" and not parent.kinds & CONTAINER:
                continue
            elif step == "[]":
                self.state.heap[key] = obj.with_elem(join(obj.elem, value))
            else:
                self.state.heap[key] = obj.with_field(step[1:-1], value)
        for sym in ordered(parent.syms):
            place = sym.then(step)
            self.state.sym[place] = NOTHING if emptied else value
        if emptied:
            forget(self.frame, self.state, parent.objs | parent.syms)
        return None

    def _in_place(self, path: Path, value: V) -> None:
        """The callee changed a tensor parameter in place: the argument's variable has the new graph."""
        if self.expr is None:
            return
        name = path.root[2:]
        params = [param.name for param in self.callee.function.params]
        offset = 1 if self.callee.function.takes_self else 0
        position = params.index(name) - offset if name in params else -1
        if not 0 <= position < len(self.expr.args):
            return
        argument = self.expr.args[position]
        place = dotted(argument)
        if place and place in self.state.env:
            self.state.env[place] = self.state.env[place].but(src=self.state.env[place].src | value.src)
        for sym in self.bound.get(name, NOTHING).syms:
            self.state.sym[sym] = value

    def _free(self, path: Path, must: bool) -> None:
        reached = self.frame.graphs.closure(self.graph_of(path))
        self.state.freed_may |= reached
        if must:
            self.state.freed_must |= reached

    def _evidence(self, evidence: frozenset[Source]) -> None:
        graphs = self.callee.graphs
        paths = {item for item in evidence if isinstance(item, Path)}
        if len(paths) == 1 and len(evidence) == 1:
            src = self.resolve(next(iter(paths))).src
            if src:
                self.frame.graphs.evidence.add(src)
            return
        reached = graphs.closure(evidence)
        inner = {item for item in reached if isinstance(item, Path)}
        unknown = any(node.unknown or node.definite for item in reached if (node := graphs.nodes.get(item)) is not None)
        if len(inner) == 1 and not unknown:
            src = self.resolve(next(iter(inner))).src
            if src:
                self.frame.graphs.evidence.add(src)

    # ---------------------------------------------------------------------------- model runs

    def runs(self) -> None:
        """Models that run in the callee under the caller's grad mode, where the callee does not set their mode."""
        function = self.callee.function
        if (
            self.state.grad == OFF
            or self.expr is None
            or function.name in ("forward", "__call__")
            or function.is_generator
        ):
            return
        count = 0
        for run in list(self.callee.runs.values()):
            if run.mode_key is not None or not run.grad & AMBIENT or run.depth >= MAX_RUN_DEPTH or count >= MAX_RUNS:
                continue
            module = join_all(self._seen(path) for path in run.module.syms if isinstance(path, Path))
            if frozen_of(self.frame.analyser, self.state, module, None):
                continue
            nodes = self.source(run.node)
            if not nodes:
                continue
            count += 1
            mode, key = mode_of(self.state, module, None)
            tip = next(iter(nodes))
            self.frame.runs[self.key, run.key] = ModelRun(
                (self.key, run.key),
                self.frame.site(self.at),
                run.text,
                module,
                self.frame.loop_ids,
                self.state.grad,
                mode,
                V(UNKNOWN, nodes),
                tip,
                (Step(run.site, f"where `{run.text}` runs the model"), *run.trace),
                loop=self.frame.innermost(()),
                depth=run.depth + 1,
                mode_key=key,
                origin=(self.callee, run),
            )

    def _seen(self, path: Path) -> V:
        value = self.resolve(path)
        return value if value.kinds else V(UNKNOWN)

    # ---------------------------------------------------------------------------- stores

    def stores(self) -> None:
        """Stores of the callee into places of ours, or of values of ours."""
        count = 0
        for store in list(self.callee.stores.values()):
            if not isinstance(store.place, Path) or store.lifted >= MAX_DEPTH or count >= MAX_LIFTED:
                continue
            if store.kind == "cat":
                continue
            if store.key not in self.exit.pending and store.loop is None:
                continue
            if store.kind == "carry" and self._set_anew(store, store.place):
                continue
            if any(self._truth(test) is False for test in store.tests):
                continue
            count += 1
            self._lift(store)

    def _truth(self, test: ir.Expr) -> bool | None:
        """What a test on flags that are passed as literals gives in this call."""
        match test:
            case ir.Name():
                const = self.bound[test.id].const if test.id in self.bound else None
                return const if isinstance(const, bool) else None
            case ir.Unary(op="not"):
                inner = self._truth(test.operand)
                return None if inner is None else not inner
            case ir.BoolOp():
                sides = (self._truth(test.left), self._truth(test.right))
                decided = test.op != "and"
                return decided if decided in sides else None if None in sides else not decided
            case _:
                return None

    def _set_anew(self, store: Store, place: Path) -> bool:
        """Whether the callee builds, or leaves, nothing in the place that comes from what it found there."""
        if place not in self.callee.graphs.closure(store.value.src):
            return True
        left = self.exit.sym.get(place)
        if left is None or not left.kinds & ~CONTAINER:
            return False
        return place not in self.callee.graphs.closure(deep(self.callee, self.exit, left).src)

    def _lift(self, store: Store) -> None:
        place = store.place
        assert isinstance(place, Path)
        reached = self.callee.graphs.closure((store.incoming or store.value).src)
        passed = not self._made_inside(store, reached)
        incoming = self.value(
            (store.incoming or store.value).but(
                objs=EMPTY, syms=(store.incoming or store.value).syms - {place, place.then("[]")}
            )
        )
        if not incoming.kinds:
            return
        trace = (
            Step(
                store.site,
                f"{store.place_text} keeps {store.text}"
                if store.kind == "retain"
                else f"{store.place_text} is built from its previous value and {store.text}",
            ),
            *store.trace,
        )
        tag = (*self.key, store.key)
        for where, kind, shown in self._places(place, store):
            if store.kind == "retain":
                made = note_store(
                    self.frame,
                    self.state,
                    "retain",
                    store.how,
                    where,
                    kind,
                    shown,
                    incoming,
                    self.at,
                    self._argument(store),
                    trace=trace,
                    tag=tag,
                )
            else:
                marks: Sources = frozenset(("prev", loop.id, _mark(where)) for loop in self.frame.loops)
                marks |= {where} if isinstance(where, Path) else EMPTY
                if place.steps:
                    # what the place held before the call: made anew in this round, it leads back to no other
                    marks = self.graph_of(place)
                made = note_carry(
                    self.frame,
                    self.state,
                    store.how,
                    where,
                    kind,
                    shown,
                    incoming.but(src=incoming.src | marks),
                    incoming,
                    self.at,
                    self._argument(store),
                    trace=trace,
                    tag=tag,
                )
            if made is None:
                continue
            made.lifted = store.lifted + 1
            made.guessed = made.guessed or store.guessed
            made.loose = made.loose or carried_loosely(self.callee, store)
            made.cleared = made.cleared or store.cleared
            made.origin = "argument" if passed else "callee"
            if not passed:
                made.site, made.trace, made.text = (
                    store.site,
                    (
                        Step(
                            self.frame.site(self.at),
                            f"{text(self.expr.func) if self.expr else 'the call'} runs in each iteration",
                        ),
                        *store.trace,
                    ),
                    store.text,
                )

    def _made_inside(self, store: Store, reached: frozenset[Source]) -> bool:
        """Whether the graph that is kept is the callee's own work: the finding then belongs at its store."""
        place = store.place
        sources = frozenset(item for item in (store.incoming or store.value).src if item != place)
        if self.callee.graphs.attached(sources, lambda path: None)[0] == "yes":
            return True
        return takes_activations(self.frame.analyser, self.callee) and any(
            isinstance(item, Path) and item != place for item in reached
        )

    def _argument(self, store: Store) -> str:
        """The argument that carries the graph in, as the user wrote it."""
        if self.expr is None:
            return store.text
        reached = self.callee.graphs.closure((store.incoming or store.value).src)
        roots = {
            item.root[2:]
            for item in reached
            if isinstance(item, Path) and item.root.startswith("p:") and item != store.place
        }
        params = [param.name for param in self.callee.function.params]
        offset = 1 if self.callee.function.takes_self and isinstance(self.expr.func, ir.Attr) else 0
        for position, name in enumerate(params[offset:]):
            if name in roots and position < len(self.expr.args):
                return text(self.expr.args[position])
        for word in self.expr.keywords:
            if word.name in roots or (word.name and params and len(roots) == 1 and next(iter(roots)) not in params):
                return text(word.value)
        return (
            text(self.expr.keywords[0].value)
            if len(self.expr.keywords) == 1 and not self.expr.args[offset:]
            else text(self.expr)
        )

    def _places(self, place: Path, store: Store) -> list[tuple[Source, PlaceKind, str]]:
        """The callee's place in our terms: (identity, kind, text)."""
        found: list[tuple[Source, PlaceKind, str]] = []
        if store.kind == "retain":
            target = self.resolve(place)
            found += [
                (key, "local", self._shown(place, store))
                for key in target.objs
                if key in self.state.heap and not self.state.heap[key].bounded
            ]
            found += [
                (path, kind_of(path), path.text)
                for path in sorted(target.syms)
                if not any(ref.kind == "bounded" for ref in target.refs)
            ]
            if not found and place.steps and place.steps[-1].startswith("["):
                # a member that the callee makes on demand (setdefault): what grows is the container around it
                return self._places(Path(place.root, place.steps[:-1]), store)
            return found
        if not place.steps:
            if place.root.startswith("p:"):
                return []
            if place.root.startswith("c:"):
                around = self.callee.function.enclosing
                if around is not None and around.key == self.frame.function.key:
                    return [(("var", place.root[2:]), "local", store.place_text)]
            return [(place, store.place_kind, store.place_text)]
        parent = self.resolve(Path(place.root, place.steps[:-1]))
        step = place.steps[-1]
        found += [((key, step), "local", self._shown(place, store)) for key in sorted(parent.objs, key=repr)]
        found += [(path.then(step), kind_of(path.then(step)), path.then(step).text) for path in sorted(parent.syms)]
        return found[:4]

    def _shown(self, place: Path, store: Store) -> str:
        """``self.sum`` of the callee in the caller's words: ``meter.sum``."""
        if place.root == "p:self" and self.expr is not None and isinstance(self.expr.func, ir.Attr):
            return text(self.expr.func.value) + "".join("" if step == "[]" else step for step in place.steps)
        return store.place_text


def _shown_first(a: Node | None, b: Node) -> Node:
    """Which of two nodes speaks for a graph: a model's before others, the first in the source before later ones."""
    return b if a is None or (not b.model, b.at, b.what) < (not a.model, a.at, a.what) else a


def _mark(place: Source) -> Source:
    if isinstance(place, Path):
        return place
    key, step = place
    if key == "var":
        return step
    return (key, step.lstrip(".").strip("[]"))


def takes_activations(analyser: Any, callee: Frame) -> bool:
    """A module's forward is there to get attached values: what it keeps of its inputs, it keeps with their graph."""
    function = callee.function
    return function.cls is not None and function.name == "forward" and bool(analyser.program.is_module(function.cls))


#: graphs of one call whose descent from each other is told to the caller
MAX_KIN = 12


def apply(frame: Frame, state: State, callee: Frame, bound: dict[str, V], at: int, expr: ir.Call | None) -> V:
    """Instantiate a callee's summary; the value of the call."""
    work = Application(frame, state, callee, bound, at, expr)
    frame.applying += 1
    try:
        if callee.function.is_generator:
            items = join_all(work.value(value) for value, _ in callee.yields)
            result = make(frame, state, (*work.key, "yields"), "list", items)
        else:
            result = work.value(callee.result) if callee.result is not None and callee.result.kinds else NONE_VALUE
        work.effects()
        work.runs()
        work.stores()
        work.kinship()
    finally:
        frame.applying -= 1
    return _as_annotated(frame, callee, result)


def _as_annotated(frame: Frame, callee: Frame, result: V) -> V:
    """A function that is annotated to return a number returns no tensor."""
    node = callee.function.node
    if not isinstance(node, ir.FunctionDef) or node.returns is None or not result.src:
        return result
    known = frame.analyser.annotated(callee.function.module, node.returns)
    return known if known is not None and known.is_only(DATA | NONE) else result
