"""The result of the interpretation of one function."""

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
from memlint.analysis.domain.values import EMPTY, Flags, Source, V
from memlint.analysis.index.program import Function
from memlint.analysis.index.uses import fed_to, states_made, uses_of
from memlint.ir import nodes as ir
from memlint.knowledge import Hook

if TYPE_CHECKING:
    from memlint.analysis.domain.summary.effects import ModelRun
    from memlint.analysis.domain.values import Source
    from memlint.analysis.facts.analyser import Analyser


class Summary(Compactable):
    """What one function returns, stores, frees, runs and calls, in terms of the symbols of its parameters.

    The values are those of the product lattice of `memlint.analysis.domain.values`, joined over all paths; unknown
    stands for unresolved code. A call instantiates it (`memlint.analysis.calls.application`).
    """

    #: the most expressions that are evaluated; beyond it, expressions are unknown, and loops run once
    BUDGET = 40_000
    #: the most sources at a function's exit that callers instantiate; beyond it, they treat the function as
    #: unresolved. In classes that refer to each other in cycles, each place leads to all graphs of all of them,
    #: and each caller would copy them. Of 14,600 functions in 61 projects, useful summaries had at most 1,400.
    WIDE = 2_000

    def __init__(self, analyser: Analyser, function: Function, flags: Flags = ()) -> None:
        self.analyser = analyser
        self.interpreter = analyser.interpreter
        self.function: Function = function
        #: the constant arguments to which the summary is specialised
        self.flags = flags
        self.module = function.module
        self.graphs = Graphs()
        self.stores: dict[Source, Store] = {}
        self.runs: dict[Source, ModelRun] = {}
        self.calls: dict[Source, CallRecord] = {}
        #: the methods that are called on receivers of unknown class, with the grad mode there
        self.named: set[tuple[str, int]] = set()
        #: the keys of functions that are passed to unresolved code, with the grad mode there
        self.handed_on: set[tuple[tuple[str, str], int]] = set()
        #: those of `named` that are called on modules, with the module and whether it is frozen there
        self.unresolved_methods: dict[int, tuple[str, V, bool | None]] = {}
        self.notes = Observations()
        self.yields: list[tuple[V, State]] = []
        self.exit: State | None = None
        #: the state inside a ``while True`` that nothing leaves; None if there is no such loop
        self.stays: State | None = None
        self.result: V | None = None
        #: the backwards, with the sources that they reach
        self.backwards: list[Backward] = []
        #: the sources that escape to unresolved code
        self.escaped: set[Source] = set()
        #: the same, without those that only reach an unresolved loss
        self.left: set[Source] = set()
        #: the sources whose value was detached, converted or compared: used without its graph
        self.used: set[Source] = set()
        self.spent = 0
        self.cut_short = False
        #: the operands of binary operations, as last evaluated
        self.operands: dict[int, tuple[V, V]] = {}
        #: the number of sources at its exit, known after its interpretation
        self.width = 0
        #: by the ordinal of a block that records under a test (``with set_grad_enabled(train):``): the test, and
        #: the graphs' clock at the block's begin and end (None: not reached yet)
        self.recorded_if: dict[int, tuple[ir.Expr, int, int | None]] = {}
        #: containers that are created every few iterations, by a literal period
        self.made_soon: set[Source] = set()
        self.hook: Hook | None = None
        #: the grad mode at the body's start, and whether a decorator restores the caller's
        self.entry = AMBIENT
        self.restores = False
        #: the names that comprehensions bind
        self.own_names: set[str] = set()

    def spend(self, work: int) -> bool:
        """Charge work to the budget. Returns whether some of the budget is left."""
        self.spent += work
        if self.spent <= self.BUDGET:
            return True
        self.cut_short = True
        return False

    @property
    def is_wide(self) -> bool:
        """Whether it has more sources at its exit than callers instantiate."""
        return self.width > self.WIDE

    def site(self, at: int) -> Site:
        return Site(self.module.key, self.function.unit, at)

    def seen(self, loop: LoopState) -> Loop:
        """The loop for an event, with whether a backward runs in it."""
        trains = any(loop.id in backward.loops for backward in self.backwards)
        return msgspec.structs.replace(loop.loop, trains=trains)

    def compact(self) -> None:
        """Drop empty containers (`Compactable`) if the project is large enough for it to pay."""
        if self.analyser.is_large:
            self.notes.compact()
            super().compact()

    def retire(self) -> None:
        """Drop all but the calls, on which facts depend, as another summary of the function replaces this one."""
        self.graphs, self.notes, self.exit, self.stays, self.result = Graphs(), Observations(), None, None, None
        for held in (self.stores, self.runs, self.escaped, self.left, self.used, self.yields, self.backwards):
            held.clear()
        vars(self).pop("outward", None)
        vars(self).pop("run_index", None)
        self.compact()

    @functools.cached_property
    def outward(self) -> Outward:
        """The symbols of its sources, computed once for all calls."""
        may, must = (self.exit.freed_may, self.exit.freed_must) if self.exit is not None else (EMPTY, EMPTY)
        return Outward(
            tuple([(path, path in must) for path in symbols(may)]),
            tuple([(symbols(one.reached), one.keeps) for one in self.backwards]),
            tuple([(path, path not in self.left) for path in symbols(self.escaped)]),
            symbols(self.left - self.escaped - self.notes.logged),
            symbols(self.notes.logged - self.escaped),
            symbols(self.graphs.closure(self.used)),
            symbols(EMPTY.union(*map(self.graphs.sure, self.notes.always_converted()))),
            symbols(self.notes.given),
        )

    def calls_at(self, at: int) -> list[CallRecord]:
        """The calls of project functions that the call expression at an ordinal makes."""
        return [record for record in self.calls.values() if record.at == at]

    @functools.cached_property
    def run_index(self) -> RunIndex:
        """The index of its runs, once it is finished."""
        return RunIndex(self)

    @property
    def last(self) -> State | None:
        """The state at the function's exit, or inside its endless loop; None if neither is reached."""
        return self.exit if self.exit is not None else self.stays

    @property
    def may_train(self) -> bool:
        """Whether a backward runs in it: on known sources, on unknown ones, or in a callee."""
        return bool(self.backwards) or self.notes.blind_backward or bool(self.notes.blind_calls)

    @property
    def answers(self) -> bool:
        """Whether a runtime calls the function for each request."""
        return self.hook is not None and self.hook.every == "request"

    @property
    def is_made_anew(self) -> bool:
        """Whether a framework makes a new object for each call of the method."""
        return self.hook is not None and self.hook.anew

    @property
    def leaves(self) -> int | None:
        """The grad mode that a call leaves set (``torch.set_grad_enabled(False)`` in a helper); None if unchanged or
        unknown."""
        if self.exit is None or self.restores or self.function.is_generator or self.exit.grad not in (ON, OFF):
            return None
        return self.exit.grad if self.exit.grad != self.entry else None

    @functools.cached_property
    def modules_by_use(self) -> frozenset[str]:
        """The texts (``model``, ``self.net``) of values that are used as only modules are: in this function or, for a
        place inside an attribute (``self.args.model``), in another method of the class."""
        used, function = uses_of(self.analyser.program, self.function), self.function
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
        """The names of objects that make the state that they are then called with, by a method that only modules of the
        project have; with that method, or None if several modules define it."""
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


Key = tuple[str, str]


class RunIndex:
    def __init__(self, summary: Summary) -> None:
        self._by_text: dict[str, list[ModelRun]] = {}
        self._by_origin: dict[tuple[Key, Source], list[ModelRun]] = {}
        for run in summary.runs.values():
            self._by_text.setdefault(run.text, []).append(run)
            if run.origin is not None:
                inner, origin = run.origin
                self._by_origin.setdefault((inner.function.key, origin.key), []).append(run)
        #: the union of what the function's backwards reach
        self.reached: set[Source] = set().union(*{id(one.reached): one.reached for one in summary.backwards}.values())

    def of_text(self, text: str) -> list[ModelRun]:
        return self._by_text.get(text, [])

    def lifted(self, summary: Summary, run: ModelRun) -> list[ModelRun]:
        """The runs that were lifted from this run of a callee."""
        return self._by_origin.get((summary.function.key, run.key), [])
