"""What the reading of one function notes for later: one field for each writer, by statement or source."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memlint.analysis.domain.events import GuardKind
from memlint.analysis.domain.summary.compact import Lean
from memlint.analysis.domain.values import Path, Source, Sources, V
from memlint.ir import nodes as ir

if TYPE_CHECKING:
    from memlint.analysis.domain.summary.effects import LoopFrame
    from memlint.analysis.judge.judged_runs import Verdict
    from memlint.analysis.transfer.library.hook_calls import HookCall
    from memlint.analysis.transfer.library.noted_calls import MetricUse, OutsideCall
    from memlint.analysis.transfer.stores.context_attributes import Kept
    from memlint.analysis.transfer.stores.left_rounds import LeftRound
    from memlint.analysis.transfer.stores.loop_updates import LoopUpdate

#: how many calls away the caller is that says how a helper is used
MAX_CALLERS_UP = 4


class Observations(Lean):
    """The notes of one function. Positions (``int``) are those of the statement or call in its file."""

    def __init__(self) -> None:
        #: a backward ran on something whose sources are not known
        self.blind_backward = False
        #: calls of functions that run one on what they got, or on what an object that they got holds
        self.blind_calls: set[int] = set()
        #: where it did
        self.blind_at: set[int] = set()
        #: autograd.grad, or another call that differentiates
        self.gradients = False
        #: where functions are called that do so
        self.gradient_calls: set[int] = set()
        #: it is done by this function itself, or by what it calls that is not in sight
        self.differentiates = False
        #: what numpy takes as it is, which has no graph (else it raises), each with the tests around the call
        self.arrays: list[tuple[Sources, tuple[ir.Expr, ...]]] = []
        #: functions (their keys) that were put into attributes, of whatever object
        self.put_on: set[tuple[str, str]] = set()
        #: graphs that something in this function was cut off from in place, by ``detach_()``
        self.cut_off: set[Source] = set()
        #: what the function hands back, with all that its graphs are made of
        self.returned: set[Source] = set()
        #: places that are begun anew where a parameter says so
        self.reset_by_parameter: set[Source] = set()
        #: what is emptied or made anew on some path; True where flags alone decide over it
        self.cleared: dict[Path, bool] = {}
        #: those of them that are emptied in a loop over iterations
        self.cleared_in_rounds: set[Path] = set()
        #: those of them that are one member of a container, given another value
        self.members_set: set[Path] = set()
        #: names of what is called on sides of tests that are never taken
        self.skipped: set[str] = set()
        #: it yields something for each batch
        self.gives_batches = False
        #: symbols that ``next`` draws from
        self.drawn: set[Source] = set()
        #: the modules of each optimizer that is made here; None for one that is not known
        self.owned: list[Sources | None] = []
        #: modules of the project that are made outside of loops, by the call
        self.own_modules: set[int] = set()
        #: modules that were handed to code that cannot be followed
        self.given: set[Source] = set()
        #: modules whose parameters were made to require no grad, or may have been; those whose gradients are read
        self.switched: set[Source] = set()
        self.learned: set[Source] = set()
        #: judged model runs by their key, and the graphs that evaluations record
        self.verdicts: dict[Source, Verdict | None] = {}
        #: whether one of them is reported, for all to see (True) or at all (False), where somebody has asked
        self.reports: dict[bool, bool] = {}
        self.evaluations: Sources = frozenset()
        #: those of them that a guard would spare: not what a model needs that differentiates by itself
        self.unguarded: Sources = frozenset()
        #: DataLoaders that are made, and models that run: on positional arguments, and at all
        self.loaders: dict[int, ir.Call] = {}
        self.models: dict[int, ir.Call] = {}
        self.forwards: set[int] = set()
        #: calls of the functions outside the project that the detectors ask about
        self.outside: dict[int, OutsideCall] = {}
        #: backwards that keep their graph, by their place: the call, and what had left before it first ran
        self.retained: dict[int, tuple[ir.Call, Sources]] = {}
        #: what has left for a log alone, which shows its value
        self.logged: set[Source] = set()
        #: calls by which metric objects take the values of a batch
        self.metrics: dict[int, MetricUse] = {}
        #: the ``continue``s, and what the variables hold then whose graph is not freed
        self.left_rounds: dict[int, LeftRound] = {}
        #: calls that add hooks to modules and tensors
        self.hooks: dict[int, HookCall] = {}
        #: what statements delete, by their place, with the variables that led to a graph then
        self.dropped: dict[int, dict[str, V]] = {}
        #: what an autograd function puts on its context, by the target
        self.on_context: dict[int, Kept] = {}
        #: the loops over iterations, by their marks
        self.rounds: dict[Source, LoopFrame] = {}
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
        #: the kinds of what is stored, by the position of its expression: a list, where the store tells of its members
        self.kinds: dict[int, int] = {}
        #: storages that unknown code may hold, and who holds an earlier round's tensor
        self.lent: Sources = frozenset()
        self.stale: dict[int, dict[int, V]] = {}

    def note_kinds(self, expr: ir.Expr, value: V) -> None:
        """An expression's value is stored."""
        self.kinds[expr.at] = self.kinds.get(expr.at, 0) | value.kinds
