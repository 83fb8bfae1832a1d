"""Whether the gradients that a backward leaves in a network are surely thrown away."""

from __future__ import annotations

from typing import NamedTuple

from memlint.sdk.project import Analyser, Class, Function, TooManyError, functions_naming
from memlint.sdk.syntax import call_at, dotted, ir, last_name, parts, walk_statements

from .gradient_walk import GradientWalk, Outcome, Wanted
from .ownership import Frame, Ownership, frame_of

#: through how many callers a backward is followed, and how many of them are examined
_DEPTH = 3
_MAX_CALLERS = 6
#: what reads or clears an optimizer without a step
_IDLE = frozenset({"state_dict", "load_state_dict", "param_groups", "zero_grad", "state", "defaults"})


class Way(NamedTuple):
    """A backward of a function, and two networks in the terms of a frame from which it runs: ``network`` is the one
    whose gradients are followed; ``reader`` gets its output."""

    function: Function
    at: int
    network: str
    reader: str


class GradientOutcomes:
    """The outcomes of backwards for networks that one search asks for, each kept."""

    def __init__(self, analyser: Analyser, ownership: Ownership) -> None:
        self.analyser = analyser
        self.ownership = ownership
        self._known: dict[Way, Outcome | None] = {}

    def lost(self, way: Way) -> Outcome | None:
        """The outcome if the gradients are surely thrown away; None if they may be used."""
        if way not in self._known:
            self._known[way] = self._from(way, frame_of(way.function), _DEPTH)
        return self._known[way]

    def _from(self, way: Way, frame: Frame, depth: int) -> Outcome | None:
        """The outcome of a frame from which the backward runs, or of all its callers."""
        wanted = Wanted(way.network, (way.function.key, way.at))
        found = GradientWalk(self.analyser, self.ownership, wanted).run(frame)
        if found.spoiled:
            return None
        is_whole = found.cleared and found.steps(way.network) and found.steps(way.reader)
        if is_whole and not (found.ended and self._may_step_later(frame.function, found)):
            return found
        return self._from_callers(way, frame, depth) if depth else None

    def _from_callers(self, way: Way, frame: Frame, depth: int) -> Outcome | None:
        function = frame.function
        if function.node is None or self.analyser.facts.is_handed_on(function):
            return None
        calls = self.analyser.facts.calls_of(function)
        if not 0 < len(calls) <= _MAX_CALLERS:
            return None
        found: Outcome | None = None
        for caller, record in calls:
            call = call_at(caller.function.body, record.at)
            if call is None or caller.function is function:
                return None
            outer = frame_of(caller.function)
            passed = self.ownership.bound(outer, function, call)
            network, reader = (self._outward(one, function, passed) for one in (way.network, way.reader))
            if not network or not reader:
                return None
            found = self._from(way._replace(network=network, reader=reader), outer, depth - 1)
            if found is None:
                return None
        return found

    @staticmethod
    def _outward(place: str, function: Function, passed: dict[str, str]) -> str:
        """A place of a function in its caller's terms; "" for an unknown one."""
        scope, _, name = place.rpartition("|")
        root, dot, rest = name.partition(".")
        if scope != f"{function.module.key}:{function.qual}" or root not in passed:
            return place
        return f"{passed[root]}{dot}{rest}" if passed[root] else ""

    def _may_step_later(self, function: Function, outcome: Outcome) -> bool:
        """Whether an optimizer of the network may be stepped after the function ended, by code that it does not run."""
        mine = f"{function.module.key}:{function.qual}|"
        params = {param.name for param in function.params}
        for place in outcome.steppers:
            name = place.rpartition("|")[2]
            if place.startswith(mine) and name not in params:
                if any(_names(one.value, name) for one in _returns(function)):
                    return True
            elif self._is_stepped_outside(place, name.rpartition(".")[2], outcome):
                return True
        return False

    def _is_stepped_outside(self, place: str, name: str, outcome: Outcome) -> bool:
        """Whether a function that did not run uses an optimizer of that name for more than to load or clear it."""
        try:
            others = [one for one in functions_naming(self.analyser, name) if one.key not in outcome.visited]
        except TooManyError:
            return True
        cls = self.ownership.class_at(place)
        family = {one.key for one in self._family(cls)} if cls is not None else set()
        return any(
            _uses(one, name, one.cls is not None and bool(family) and one.cls.key not in family) for one in others
        )

    def _family(self, cls: Class) -> list[Class]:
        """The class with those above and below it."""
        return [*self.analyser.program.ancestors(cls)[0], *self.analyser.program.below(cls)]


def _returns(function: Function) -> list[ir.Return]:
    return [one for one in walk_statements(function.body, into_definitions=False) if isinstance(one, ir.Return)]


def _names(expr: ir.Expr | None, name: str) -> bool:
    return expr is not None and any(last_name(part) == name for part in parts((ir.ExprStmt(expr.at, expr),)))


def _uses(function: Function, name: str, unrelated: bool) -> bool:
    """Whether a function reads an optimizer of that name: not only to assign, load or clear it, or to schedule it.
    ``unrelated``: it is a method of another class, whose own object has another optimizer."""
    idle: set[int] = set()
    if unrelated:
        own = f"{function.own_name}.{name}"
        idle.update(part.at for part in parts(function.body) if isinstance(part, ir.Attr) and dotted(part) == own)
    for statement in walk_statements(function.body, into_definitions=False):
        if isinstance(statement, ir.Assign):
            idle.update(target.at for target in statement.targets)
    for part in parts(function.body):
        if isinstance(part, ir.Attr) and part.name in _IDLE:
            idle.add(part.value.at)
        elif isinstance(part, ir.Call) and ("LR" in last_name(part.func) or "sched" in last_name(part.func).lower()):
            idle.update(one.at for one in part.passed)
    return any(
        isinstance(part, ir.Name | ir.Attr) and last_name(part) == name and part.at not in idle
        for part in parts(function.body)
    )
