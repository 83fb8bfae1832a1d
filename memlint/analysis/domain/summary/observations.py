"""What the interpretation of one function records for judges and rules, by statement or graph source."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from memlint.analysis.domain.events import GuardKind
from memlint.analysis.domain.summary.compact import Compactable
from memlint.analysis.domain.values import Path, Source, Sources, V
from memlint.ir import nodes as ir

if TYPE_CHECKING:
    from memlint.analysis.domain.summary.effects import LoopState
    from memlint.analysis.judge.judged_runs import Verdict
    from memlint.analysis.transfer.library.forward_hooks import HookCall
    from memlint.analysis.transfer.library.noted_runs import MetricUse, OutsideCall
    from memlint.analysis.transfer.stores.context_attributes import Kept
    from memlint.analysis.transfer.stores.left_rounds import LeftRound
    from memlint.analysis.transfer.stores.loop_updates import LoopUpdate

#: how many callers up the use of a helper is looked for
MAX_CALLERS_UP = 4


class GradientObservations(Compactable):
    """Facts about gradients: backwards, differentiation, graphs that are cut or kept."""

    def __init__(self) -> None:
        super().__init__()
        #: whether a backward ran on a value of unknown sources
        self.blind_backward = False
        #: calls of functions that may run a backward through an argument, or through what it holds
        self.blind_calls: set[int] = set()
        #: the ordinals of such backwards and calls
        self.blind_at: set[int] = set()
        #: whether a backward ran in a callee and reached nothing of the caller: the callee makes, or cuts, its inputs
        self.trains_below = False
        #: whether `autograd.grad`, or another differentiating call, is reached
        self.gradients = False
        #: whether one of these differentiates what is not known; the known ones are among the backwards
        self.unknown_gradients = False
        #: whether one of these may record or keep the graph of what it differentiates
        self.keeps_gradients = False
        #: the ordinals of calls of functions that differentiate
        self.gradient_calls: set[int] = set()
        #: values that NumPy converts, which raises for a graph, each with the tests around the call, and whether it has
        #: no graph on some path
        self.arrays: list[tuple[Sources, tuple[ir.Expr, ...], bool]] = []
        #: graphs from which a value was detached in place, by ``detach_()``
        self.cut_off: set[Source] = set()
        #: by ordinal, the backwards that retain their graph, with the sources that had escaped before
        self.retained: dict[int, tuple[ir.Call, Sources]] = {}

    def always_converted(self) -> Iterator[Sources]:
        """The graphs that NumPy converts on every path."""
        return (taken for taken, tests, bare in self.arrays if not (tests or bare))

    def add_gradients_of(self, callee: GradientObservations, at: int) -> None:
        """Add what a callee that differentiates, called at an ordinal, tells of its caller's gradients."""
        self.gradients = True
        self.keeps_gradients |= callee.keeps_gradients
        self.unknown_gradients |= callee.unknown_gradients
        self.gradient_calls.add(at)


class PlaceObservations(Compactable):
    """Facts about places and the values in them: returned, logged, emptied, deleted, carried over."""

    def __init__(self) -> None:
        super().__init__()
        #: the closure of the sources that the function returns
        self.returned: set[Source] = set()
        #: sources that escape to a log alone
        self.logged: set[Source] = set()
        #: places that are reset under a test of a parameter
        self.reset_by_parameter: set[Source] = set()
        #: places that are emptied or created anew on some path; True if only flags decide about it
        self.cleared: dict[Path, bool] = {}
        #: those of `cleared` that are emptied in a loop over iterations
        self.cleared_in_rounds: set[Path] = set()
        #: those of `cleared` that are a single member of a container, assigned another value
        self.members_set: set[Path] = set()
        #: the kinds of stored values, by the ordinal of their expression; a list's store describes its members
        self.kinds: dict[int, int] = {}
        #: storages that unknown code may hold, and the variables that hold a tensor of an earlier iteration
        self.lent: Sources = frozenset()
        self.stale: dict[int, dict[int, V]] = {}
        #: by ordinal, the deletions, with the variables that then led to a graph
        self.dropped: dict[int, dict[str, V]] = {}
        #: by ordinal, the ``continue`` statements, with the variables whose graph is not freed
        self.left_rounds: dict[int, LeftRound] = {}


class ModelObservations(Compactable):
    """Facts about the networks that the function makes or runs: which code owns, trains, freezes and runs them."""

    def __init__(self) -> None:
        super().__init__()
        #: the modules of each optimizer made here; None for unknown ones
        self.owned: list[Sources | None] = []
        #: the calls that make modules of the project outside of loops
        self.own_modules: set[int] = set()
        #: modules that were passed to unresolved code
        self.given: set[Source] = set()
        #: modules whose requires_grad is or may be turned off; modules whose gradients are read
        self.switched: set[Source] = set()
        self.learned: set[Source] = set()
        #: the verdicts on model runs, by their key
        self.verdicts: dict[Source, Verdict | None] = {}
        #: the memo of `judge.run_callers`: whether a run is reported on strong evidence (True), or at all (False)
        self.reports: dict[bool, bool] = {}
        #: the graphs that evaluations record
        self.evaluations: Sources = frozenset()
        #: those of `evaluations` that a guard would avoid: not those of a model that differentiates itself
        self.unguarded: Sources = frozenset()
        #: the calls of models: those with positional arguments, and all
        self.models: dict[int, ir.Call] = {}
        self.forwards: set[int] = set()


class ControlObservations(Compactable):
    """Facts about loops over iterations, what they draw from, and code that never runs."""

    def __init__(self) -> None:
        super().__init__()
        #: the names of callees in branches that are never taken
        self.skipped: set[str] = set()
        #: whether it yields once for each batch, or for each step of training
        self.gives_batches = False
        #: the symbols from which ``next`` draws
        self.drawn: set[Source] = set()
        #: the loops over iterations, by their marks
        self.rounds: dict[Source, LoopState] = {}
        #: the keys of functions that were assigned to attributes of any object
        self.put_on: set[tuple[str, str]] = set()


class RuleObservations(Compactable):
    """Facts for single rules: calls, guards, created tensors, updates."""

    def __init__(self) -> None:
        super().__init__()
        #: the calls that make DataLoaders
        self.loaders: dict[int, ir.Call] = {}
        #: the calls of external functions that detectors declare
        self.outside: dict[int, OutsideCall] = {}
        #: the calls that pass a batch's values to metric objects
        self.metrics: dict[int, MetricUse] = {}
        #: calls that add hooks to modules and tensors
        self.hooks: dict[int, HookCall] = {}
        #: what an autograd function stores on its context, by the target
        self.on_context: dict[int, Kept] = {}
        #: guards without effect (kind, text), and ``with`` blocks that guard
        self.inert: dict[int, tuple[GuardKind, str]] = {}
        self.blocks: dict[int, ir.With] = {}
        #: calls of tensor factories: (name, floating, number of elements)
        self.made: dict[int, tuple[str, bool, int]] = {}
        #: those with a literal shape of very much memory: (call, bytes)
        self.oversized: dict[int, tuple[ir.Call, int]] = {}
        #: the names that statements of a loop update, and the updates by statement
        self.updated: set[str] = set()
        self.rebound: dict[int, LoopUpdate] = {}


class Observations(GradientObservations, PlaceObservations, ModelObservations, ControlObservations, RuleObservations):
    """What is recorded of one function. Positions (``int``) are ordinals of the statement or call in its unit."""

    def note_kinds(self, expr: ir.Expr, value: V) -> None:
        """Record the kinds of a stored expression."""
        self.kinds[expr.at] = self.kinds.get(expr.at, 0) | value.kinds
