"""What is known of one function once it has been interpreted."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import msgspec

from memlint.analysis.domain.events import Loop, Site
from memlint.analysis.domain.graphs import Graphs
from memlint.analysis.domain.path_correlation import repeated_tests
from memlint.analysis.domain.state import AMBIENT, OFF, ON, State
from memlint.analysis.domain.summary.compact import Compactable
from memlint.analysis.domain.summary.effects import Backward, CallRecord, LoopState, ModelRun, Outward, Store, symbols
from memlint.analysis.domain.summary.observations import Observations
from memlint.analysis.domain.summary.run_index import RunIndex
from memlint.analysis.domain.values import EMPTY, Flags, Source, V
from memlint.analysis.index.program import Function
from memlint.analysis.index.uses import fed_to, states_made, uses_of
from memlint.ir import nodes as ir
from memlint.knowledge import Hook

if TYPE_CHECKING:
    from memlint.analysis.facts.analyser import Analyser


class Summary(Compactable):
    """What one function returns, stores, frees, runs and calls, in terms of the symbols of its parameters.

    The values are those of the product lattice of `memlint.analysis.domain.values`, joined over all paths; unknown
    stands for whatever cannot be followed. A call instantiates it (`memlint.analysis.calls.application`).
    """

    #: bounds the work, in expressions evaluated; past it, expressions are unknown, and loops run once
    BUDGET = 40_000
    #: sources in what a function leaves behind: where classes hold each other in circles, each of their places leads to
    #: all graphs that any of them has, and each caller would translate them all. With more than this, callers take it
    #: for what cannot be followed. (Of 14,600 functions of 61 projects, those with something to say had 1,400 at most.)
    WIDE = 2_000

    def __init__(self, analyser: Analyser, function: Function, flags: Flags = ()) -> None:
        self.analyser = analyser
        self.interpreter = analyser.interpreter
        self.function: Function = function
        #: the literals that the summary is made for
        self.flags = flags
        self.module = function.module
        self.graphs = Graphs()
        self.stores: dict[Source, Store] = {}
        self.runs: dict[Source, ModelRun] = {}
        self.calls: dict[Source, CallRecord] = {}
        #: methods that are called on receivers of unknown class, with the grad mode there
        self.named: set[tuple[str, int]] = set()
        #: functions (their keys) that are handed to code that cannot be followed, with the grad mode there
        self.handed_on: set[tuple[tuple[str, str], int]] = set()
        #: those of them that modules of unknown class are asked for, with the module and whether it is frozen there
        self.asked: dict[int, tuple[str, V, bool | None]] = {}
        self.notes = Observations()
        self.yields: list[tuple[V, State]] = []
        self.exit: State | None = None
        #: the state in which it stays where it never ends: in the rounds of a ``while True`` that nothing leaves
        self.stays: State | None = None
        self.result: V | None = None
        #: sources that reached a backward, with the loops around it
        self.backwards: list[Backward] = []
        #: sources that leave to code that cannot be followed
        self.escaped: set[Source] = set()
        #: the same, without what only goes to a loss that cannot be followed
        self.left: set[Source] = set()
        #: sources whose value was detached, converted or compared: consumed without its graph
        self.used: set[Source] = set()
        self.wanted: dict[str, str] = {}
        self.spent = 0
        self.cut_short = False
        #: the operands of binary operations, as last evaluated
        self.operands: dict[int, tuple[V, V]] = {}
        #: how many sources there are in what it leaves behind, known once it is interpreted
        self.width = 0
        #: tests under which alone a block records (``with set_grad_enabled(train):``), by its ordinal: the test, and
        #: the graphs' clock where the block begins and ends (None: not yet)
        self.recorded_if: dict[int, tuple[ir.Expr, int, int | None]] = {}
        #: containers that are made every few rounds, by a literal period
        self.made_soon: set[Source] = set()
        self.hook: Hook | None = None
        #: the grad mode that the body starts with, and whether a decorator puts the caller's back
        self.entry = AMBIENT
        self.restores = False
        #: names that comprehensions bind
        self.own_names: set[str] = set()

    def spend(self, work: int) -> bool:
        """Charge work to the budget; whether some of it is left."""
        self.spent += work
        if self.spent <= self.BUDGET:
            return True
        self.cut_short = True
        return False

    @property
    def is_wide(self) -> bool:
        """Whether it leaves more behind than callers translate."""
        return self.width > self.WIDE

    def site(self, at: int) -> Site:
        return Site(self.module.key, self.function.unit, at)

    def seen(self, loop: LoopState) -> Loop:
        """The loop of an event, with whether a backward runs in it."""
        trains = any(loop.id in backward.loops for backward in self.backwards)
        return msgspec.structs.replace(loop.loop, trains=trains)

    def compact(self) -> None:
        """Drop empty containers (`Compactable`) in projects that are large enough for it to pay."""
        if self.analyser.is_large:
            self.notes.compact()
            super().compact()

    def retire(self) -> None:
        """Drop all but the calls, on which facts depend: another summary of the function has taken its place."""
        self.graphs, self.notes, self.exit, self.stays, self.result = Graphs(), Observations(), None, None, None
        for held in (self.stores, self.runs, self.escaped, self.left, self.used, self.yields, self.backwards):
            held.clear()
        vars(self).pop("outward", None)
        vars(self).pop("run_index", None)
        self.compact()

    @functools.cached_property
    def outward(self) -> Outward:
        """What callers see of its sources, computed once for all calls."""
        may, must = (self.exit.freed_may, self.exit.freed_must) if self.exit is not None else (EMPTY, EMPTY)
        return Outward(
            tuple([(path, path in must) for path in symbols(may)]),
            tuple([symbols(backward.reached) for backward in self.backwards]),
            tuple([(path, path not in self.left) for path in symbols(self.escaped)]),
            symbols(self.left - self.escaped),
            symbols(self.used),
            symbols(self.notes.given),
        )

    @functools.cached_property
    def run_index(self) -> RunIndex:
        """The index of its runs, once it is finished."""
        return RunIndex(self)

    @property
    def last(self) -> State | None:
        """The state at the function's end, or, where it never ends, the one in which it stays."""
        return self.exit if self.exit is not None else self.stays

    @property
    def may_train(self) -> bool:
        """Whether a backward runs in it: one on known sources, on unknown ones, or in a callee."""
        return bool(self.backwards) or self.notes.blind_backward or bool(self.notes.blind_calls)

    @property
    def leaves(self) -> int | None:
        """The grad mode that a call leaves behind (``torch.set_grad_enabled(False)`` in a helper); None where it is as
        before, or not known."""
        if self.exit is None or self.restores or self.function.is_generator or self.exit.grad not in (ON, OFF):
            return None
        return self.exit.grad if self.exit.grad != self.entry else None

    @functools.cached_property
    def modules_by_use(self) -> frozenset[str]:
        """Texts (``model``, ``self.net``) of what is used as only modules are in this function, or, where an attribute
        of its object holds it (``self.args.model``), in another method."""
        used, function = uses_of(self.function), self.function
        if function.cls is None or not function.takes_self or not function.params:
            return used
        own = f"{function.params[0].name}."
        others = self.analyser.facts.attributes.used_as_modules(function.cls)
        return used.union(name for name in others if name.startswith(own) and name.count(".") > 1)

    @functools.cached_property
    def repeated_tests(self) -> frozenset[str]:
        """The tests that this function evaluates more than once."""
        return repeated_tests(self.function)

    @functools.cached_property
    def modules_by_state(self) -> dict[str, Function | None]:
        """Names that make the state that they are then run with, by a method that only modules of the project have;
        the method, where just one module has it."""
        made = states_made(self.function.body)
        makers: dict[str, list[Function]] = {}
        for method in sorted({method for _, _, method in made}):
            known = self.analyser.methods_named(method, self.function)
            if known and all(item.cls is not None and self.analyser.program.is_module(item.cls) for item in known):
                makers[method] = known
        if not makers:
            return {}
        fed = fed_to(self.function.body)
        pairs = sorted({(name, method) for state, name, method in made if method in makers and (name, state) in fed})
        return {name: makers[method][0] if len(makers[method]) == 1 else None for name, method in pairs}
