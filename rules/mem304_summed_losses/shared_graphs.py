"""Graphs that the iterations of a loop share: the backward of the first would free what the next ones need."""

from __future__ import annotations

from collections.abc import Sequence, Set

from memlint.sdk.project import Analyser, Class, Function, Summary, marks_of
from memlint.sdk.syntax import (
    calls,
    dotted,
    ir,
    last_name,
    names_read,
    parts,
    unpacked_targets,
    walk_expression,
    walk_statements,
)
from memlint.sdk.values import LoopState, Path, Source, Sources, Store, tensors_within

from .operations import PUTS
from .uses_of_sum import Uses, before_loop, parts_of_loop

#: methods of every module, which leave no graph in it
_OF_MODULES = frozenset(
    {"train", "eval", "zero_grad", "cuda", "cpu", "to", "half", "float", "double", "requires_grad_", "load_state_dict"}
)
#: packages and functions that put no graph into a module
_HARMLESS = frozenset({"torch", "nn", "wandb", "print"})
#: calls whose argument is no input of a model
_NEUTRAL = PUTS | {"range", "len", "print"}


class Shared:
    """What the terms of a sum may depend on, with a graph, besides their own iteration. ``stores``: those of the loop;
    ``sums``: their places; ``iteration``: the uses of what an iteration computes."""

    def __init__(
        self,
        analyser: Analyser,
        summary: Summary,
        loop: LoopState,
        stores: Sequence[Store],
        sums: Set[str],
        iteration: Uses,
    ) -> None:
        self._analyser, self._summary, self._loop = analyser, summary, loop
        self._function = summary.function
        self._sums, self._iteration = sums, iteration
        self._reached: Sources = summary.graphs.closure(frozenset().union(*(store.entering.src for store in stores)))
        over, self._parts = parts_of_loop(summary.function, loop)
        #: the variables of the iterable
        self._over = names_read(over) if over is not None else frozenset[str]()
        #: the places that an iteration calls: models and criteria
        self._called = {place for part in self._parts if isinstance(part, ir.Call) and (place := dotted(part.func))}

    def __bool__(self) -> bool:
        return (
            self._earlier_iterations()
            or self._computed_before()
            or self._arguments_with_a_graph()
            or self._attributes_of_other_methods()
            or self._objects_with_state()
        )

    def _earlier_iterations(self) -> bool:
        """Whether a term depends on an earlier iteration: a previous output, weights that each step updates, a member
        of what the loop collects. A sum itself does, and what is detached has no graph."""
        marks = [item[2] for item in self._reached if isinstance(item, tuple) and item[:2] == ("prev", self._loop.id)]
        if any(self._is_replaced(mark) for mark in marks):
            return True
        return any(
            other.kind == "retain"
            and self._loop.id in other.loops
            and self._loop.id not in other.made
            and marks_of(other) & self._reached
            for other in self._summary.stores.values()
        )

    def _is_replaced(self, mark: Source) -> bool:
        """Whether iterations may leave a graph in the place of a mark. A list that was filled before is left as it
        is."""
        if isinstance(mark, str):
            return mark not in self._sums and self._iteration.forms.get(mark, "other") == "other"
        filled = [
            one.loops for one in self._summary.stores.values() if isinstance(mark, tuple) and one.place == mark[0]
        ]
        return not filled or any(self._loop.id in loops for loops in filled)

    def _computed_before(self) -> bool:
        """Whether the iterations use something that was computed before the loop, with a graph."""
        graphs, loop = self._summary.graphs, self._loop
        inside = {part.at for part in self._parts}
        earlier = {
            key: graphs.closure(frozenset((key,)))
            for key, node in graphs.nodes.items()
            if not node.leaf and loop.id not in node.loops and node.at not in inside
        }
        numbers = {f"p:{param.name}" for param in self._function.params if _is_number(param.default)}
        for key, behind in earlier.items():
            roots = {item for item in behind if isinstance(item, Path) and item.root not in numbers and not item.steps}
            # an unknown function of an argument may make the batches; an operation on a tensor keeps its graph
            if key in self._reached and (
                any(map(self._has_a_graph, behind)) or (roots and not graphs.nodes[key].unknown)
            ):
                return True
        # an operation on what may be parameters records a graph; so does arithmetic in a comprehension, whose members
        # have no nodes of their own
        made = {
            graphs.nodes[key].at
            for key, behind in earlier.items()
            if any(node.definite for node in graphs.nodes_of(behind))
            or (not graphs.nodes[key].unknown and any(isinstance(item, Path) for item in behind))
        }
        made |= {
            part.at
            for part in parts(self._function.body)
            if isinstance(part, ir.Comprehension)
            and part.at not in inside
            and any(isinstance(each, ir.Binary) for each in walk_expression(part.element))
        }
        known = Uses(self._analyser, self._function, {}, made=made)
        for statements in before_loop(self._function.body, loop):
            known.block(statements)
        known.forms = {name: form for name, form in known.forms.items() if form == "other" and name not in self._sums}
        known.made, known.is_other_read = frozenset(), False
        known.block(loop.body)
        return known.is_other_read or (not loop.body and any(dotted(part) in known.forms for part in self._parts))

    def _has_a_graph(self, item: Source) -> bool:
        """Whether a source is recorded with a graph: by a model, or an argument that is called like one, or as the
        parameter of one."""
        if isinstance(item, Path):
            is_model = item.root.removeprefix("p:") in {*self._called, self._function.own_name}
            return is_model and bool(item.steps) and all(step.startswith(".") for step in item.steps)
        node = self._summary.graphs.nodes.get(item)
        return node is not None and (node.definite or node.callee is not None)

    def _arguments_with_a_graph(self) -> bool:
        """Whether an argument on which the terms depend may be computed by a model."""
        names = self._over.union(*(names_read(part) for part in self._parts))
        whole = {item.root.removeprefix("p:") for item in self._reached if isinstance(item, Path) and not item.steps}
        given = [param.name for param in self._function.given if not _is_number(param.default)]
        return any(
            (name in names and self._is_given_a_graph(name)) or (name in whole and self._may_be_given_one(name))
            for name in given
        )

    def _is_given_a_graph(self, name: str) -> bool:
        """Whether a caller passes what a model has computed, or a collection of it. An unknown function gives no graph
        to what is moved to the device here."""
        is_moved = self._is_moved(name)
        for caller, record in self._analyser.facts.calls_of(self._function):
            value = record.args.get(name)
            if value is not None and not value.may_be_module():
                inside = tensors_within(caller, caller.exit, value).src if caller.exit is not None else frozenset()
                nodes = [caller.graphs.nodes.get(item) for item in caller.graphs.closure(value.src | inside)]
                recorded = [node for node in nodes if node is not None and not node.leaf]
                if any(node.definite or (node.unknown and not is_moved) for node in recorded):
                    return True
        return False

    def _is_moved(self, name: str) -> bool:
        """Whether a function moves an argument, or a part of it, to a device: it comes from a loader."""
        uses = Uses(self._analyser, self._function, {name: "linear"})
        uses.block(self._function.body)
        return uses.is_moved

    def _may_be_given_one(self, name: str) -> bool:
        """Whether an argument on which each term depends as a whole may have a graph. What is moved to the device here
        comes from a loader, and what only scales a loss is a number."""
        calls_of = self._analyser.facts.calls_of(self._function)
        given = [(caller.graphs, record.args[name]) for caller, record in calls_of if name in record.args]
        if name in self._called or (given and not any(graphs.closure(value.src) for graphs, value in given)):
            return False
        if name in self._over or self._is_moved(name):
            return False
        return self._is_used_as_input(name)

    def _is_used_as_input(self, place: str) -> bool:
        """Whether an iteration gives a place to a function, or reads it elsewhere: not only to scale a loss."""
        return self._is_input(place) or not any(dotted(part) == place for part in self._parts)

    def _is_input(self, place: str) -> bool:
        """Whether an iteration gives a place to a function, and does not only scale a loss by it."""
        return any(
            isinstance(part, ir.Call)
            and last_name(part.func) not in _NEUTRAL
            and any(dotted(one) == place for each in (*part.passed, part.func) for one in walk_expression(each))
            for part in self._parts
        )

    def _attributes_of_other_methods(self) -> bool:
        """Whether a term includes an attribute that another method has set, possibly with that method's graph. What
        only a constructor sets has none: the backward of the second step would raise."""
        function = self._function
        own = f"p:{function.own_name}" if function.takes_self else None
        names = {
            item.steps[0].removeprefix(".") if item.steps else ""
            for item in self._reached
            if isinstance(item, Path) and item.root == own
        }
        return any(
            function.cls is None or not name or _is_filled(self._analyser, function, function.cls, name)
            for name in names
            if not name or self._is_used_as_input(f"{function.own_name}.{name}")
        )

    def _objects_with_state(self) -> bool:
        """Whether an object may carry a graph from one iteration to the next: one that gets a value with a graph and is
        read without an argument (``memory.write(x)``, ``memory.read()``), a model that is adapted (``learner.adapt(
        loss)``, ``inner_optimizer.step(loss)``), or one that an unknown function resets."""
        both = (self._iteration.read & self._iteration.written) - self._loop.bound - self._called
        if any(place.partition(".")[0] in self._function.locals for place in both):
            return True
        lasting = self._called - self._loop.bound
        for place, method in self._iteration.changed:
            if place in lasting or (method == "step" and place.partition(".")[0] not in self._loop.bound):
                return True
        inside = {part.at for part in self._parts}
        resolved = {record.at for record in self._summary.calls.values()}
        for statement in walk_statements(self._function.body, into_definitions=False):
            call = statement.value if isinstance(statement, ir.ExprStmt) else None
            if not isinstance(call, ir.Call) or call.at in resolved or call.at in inside:
                continue
            own = dotted(call.func.value) if isinstance(call.func, ir.Attr) else ""
            given = {dotted(each) for each in call.args}
            if own in lasting and last_name(call.func) not in _OF_MODULES:
                return True
            if lasting & given and dotted(call.func).partition(".")[0] not in _HARMLESS:
                return True
        return False


def _is_number(default: ir.Expr | None) -> bool:
    return isinstance(default, ir.Const) and isinstance(default.value, int | float)


def _is_filled(analyser: Analyser, function: Function, cls: Class, name: str) -> bool:
    """Whether another method may leave a graph in an attribute, or puts something into it."""
    family = (*analyser.program.ancestors(cls)[0], *analyser.program.below(cls))
    methods = [method for one in family for method in one.methods.values() if method.name != "__init__"]
    others = [method for method in methods if method.key != function.key]
    if any(f"{method.own_name}.{name}" in _put_into(method) for method in others):
        return True
    setters = [method for method in methods if f"{method.own_name}.{name}" in _assigned(method)]
    if not setters:
        return analyser.facts.attributes.is_set_later(cls, name)
    return any(_leaves_a_graph(analyser.summary(method), name) for method in setters if method in others)


def _leaves_a_graph(summary: Summary | None, name: str) -> bool:
    """Whether a method may leave a graph in an attribute: all but what is known to have none, and parameters."""
    state = summary.exit if summary is not None else None
    if summary is None or state is None:
        return True
    value = state.sym.get(Path(f"p:{summary.function.own_name}", (f".{name}",)))
    if value is None:
        return True
    behind = summary.graphs.closure(value.src | tensors_within(summary, state, value).src)
    recorded = summary.graphs.nodes_of(behind)
    return any(not node.leaf for node in recorded) or any(isinstance(item, Path) for item in behind)


def _assigned(method: Function) -> list[str]:
    """The places that a method assigns."""
    return [dotted(place) for one in walk_statements(method.body) for place in unpacked_targets(one)]


def _put_into(method: Function) -> list[str]:
    """The places of whose members a method sets one."""
    puts = [call.func for call in calls(method.body) if last_name(call.func) in PUTS]
    assigned = [one for one in walk_statements(method.body) if isinstance(one, ir.Assign)]
    members = [target for one in assigned for target in one.targets if isinstance(target, ir.Subscript)]
    return [dotted(part.value) for part in (*puts, *members) if isinstance(part, ir.Attr | ir.Subscript)]
