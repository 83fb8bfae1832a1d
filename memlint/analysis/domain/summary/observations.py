"""What the interpretation of one function notes for judges and rules, by statement or graph source."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memlint.analysis.domain.events import GuardKind
from memlint.analysis.domain.summary.compact import Compactable
from memlint.analysis.domain.values import Path, Source, Sources, V
from memlint.ir import nodes as ir

if TYPE_CHECKING:
    from memlint.analysis.domain.summary.effects import LoopState
    from memlint.analysis.judge.judged_runs import Verdict
    from memlint.analysis.transfer.library.hook_calls import HookCall
    from memlint.analysis.transfer.library.noted_calls import MetricUse, OutsideCall
    from memlint.analysis.transfer.stores.context_attributes import Kept
    from memlint.analysis.transfer.stores.left_rounds import LeftRound
    from memlint.analysis.transfer.stores.loop_updates import LoopUpdate

#: how many calls away the caller is that says how a helper is used
MAX_CALLERS_UP = 4


class GradientObservations(Compactable):
    """What it does with gradients: backwards, what differentiates, graphs that are cut or kept."""

    def __init__(self) -> None:
        super().__init__()
        #: a backward ran on something whose sources are not known
        self.blind_backward = False
        #: calls of functions that run one on their arguments, or on what an argument's object holds
        self.blind_calls: set[int] = set()
        #: where such a backward or call stands
        self.blind_at: set[int] = set()
        #: autograd.grad, or another call that differentiates
        self.gradients = False
        #: where functions are called that do so
        self.gradient_calls: set[int] = set()
        #: it is done by this function itself, or by what it calls that is not in sight
        self.differentiates = False
        #: what numpy takes as it is, which has no graph (else it raises), each with the tests around the call
        self.arrays: list[tuple[Sources, tuple[ir.Expr, ...]]] = []
        #: graphs that something in this function was cut off from in place, by ``detach_()``
        self.cut_off: set[Source] = set()
        #: backwards that keep their graph, by their place: the call, and what had left before it first ran
        self.retained: dict[int, tuple[ir.Call, Sources]] = {}


class PlaceObservations(Compactable):
    """What becomes of places and of the values in them: returned, logged, emptied, deleted, carried over."""

    def __init__(self) -> None:
        super().__init__()
        #: what the function hands back, with all that its graphs are made of
        self.returned: set[Source] = set()
        #: what has left for a log alone, which shows its value
        self.logged: set[Source] = set()
        #: places that are begun anew where a parameter says so
        self.reset_by_parameter: set[Source] = set()
        #: what is emptied or made anew on some path; True where flags alone decide over it
        self.cleared: dict[Path, bool] = {}
        #: those of them that are emptied in a loop over iterations
        self.cleared_in_rounds: set[Path] = set()
        #: those of them that are one member of a container, given another value
        self.members_set: set[Path] = set()
        #: the kinds of what is stored, by the position of its expression: a list, where the store tells of its members
        self.kinds: dict[int, int] = {}
        #: storages that unknown code may hold, and who holds an earlier round's tensor
        self.lent: Sources = frozenset()
        self.stale: dict[int, dict[int, V]] = {}
        #: what statements delete, by their place, with the variables that led to a graph then
        self.dropped: dict[int, dict[str, V]] = {}
        #: the ``continue``s, and what the variables hold then whose graph is not freed
        self.left_rounds: dict[int, LeftRound] = {}


class ModelObservations(Compactable):
    """The networks of the project and of the function: who owns, trains, freezes and runs them."""

    def __init__(self) -> None:
        super().__init__()
        #: the modules of each optimizer that is made here; None for one that is not known
        self.owned: list[Sources | None] = []
        #: modules of the project that are made outside of loops, by the call
        self.own_modules: set[int] = set()
        #: modules that were handed to code that cannot be followed
        self.given: set[Source] = set()
        #: modules whose parameters were made to require no grad, or may have been; those whose gradients are read
        self.switched: set[Source] = set()
        self.learned: set[Source] = set()
        #: judged model runs, by their key
        self.verdicts: dict[Source, Verdict | None] = {}
        #: whether one of them is reported, for all to see (True) or at all (False), where somebody has asked
        self.reports: dict[bool, bool] = {}
        #: the graphs that evaluations record
        self.evaluations: Sources = frozenset()
        #: those of them that a guard would spare: not what a model needs that differentiates by itself
        self.unguarded: Sources = frozenset()
        #: models that run, by the call: on positional arguments, and at all
        self.models: dict[int, ir.Call] = {}
        self.forwards: set[int] = set()


class ControlObservations(Compactable):
    """The loops over iterations, what they draw from, and what never runs."""

    def __init__(self) -> None:
        super().__init__()
        #: names of what is called on sides of tests that are never taken
        self.skipped: set[str] = set()
        #: it yields something for each batch
        self.gives_batches = False
        #: symbols that ``next`` draws from
        self.drawn: set[Source] = set()
        #: the loops over iterations, by their marks
        self.rounds: dict[Source, LoopState] = {}
        #: functions (their keys) that were put into attributes, of whatever object
        self.put_on: set[tuple[str, str]] = set()


class RuleObservations(Compactable):
    """What rules ask about: calls, guards, tensors that are made, updates."""

    def __init__(self) -> None:
        super().__init__()
        #: DataLoaders that are made, by the call
        self.loaders: dict[int, ir.Call] = {}
        #: calls of the functions outside the project that the detectors ask about
        self.outside: dict[int, OutsideCall] = {}
        #: calls by which metric objects take the values of a batch
        self.metrics: dict[int, MetricUse] = {}
        #: calls that add hooks to modules and tensors
        self.hooks: dict[int, HookCall] = {}
        #: what an autograd function puts on its context, by the target
        self.on_context: dict[int, Kept] = {}
        #: guards without effect (what, its text), and ``with`` blocks that guard
        self.inert: dict[int, tuple[GuardKind, str]] = {}
        self.blocks: dict[int, ir.With] = {}
        #: calls of tensor factories: (name, floating, number of elements)
        self.made: dict[int, tuple[str, bool, int]] = {}
        #: those of a literal shape that takes very much memory: (call, bytes)
        self.oversized: dict[int, tuple[ir.Call, int]] = {}
        #: names that statements of a loop update, and the updates by statement
        self.updated: set[str] = set()
        self.rebound: dict[int, LoopUpdate] = {}


class Observations(GradientObservations, PlaceObservations, ModelObservations, ControlObservations, RuleObservations):
    """What is noted of one function. Positions (``int``) are those of the statement or call in its file."""

    def note_kinds(self, expr: ir.Expr, value: V) -> None:
        """An expression's value is stored."""
        self.kinds[expr.at] = self.kinds.get(expr.at, 0) | value.kinds
