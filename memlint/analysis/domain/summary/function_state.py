"""One function during its interpretation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from memlint.analysis.domain.graphs import Node
from memlint.analysis.domain.state import AMBIENT, OFF, ON, State
from memlint.analysis.domain.summary.effects import Backward, LoopState
from memlint.analysis.domain.summary.sharing import share
from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.domain.values import EMPTY, Flags, Path, Source, Sources, V
from memlint.analysis.index.bases import gives_copies
from memlint.analysis.index.program import Function
from memlint.ir import nodes as ir

if TYPE_CHECKING:
    from memlint.analysis.facts.analyser import Analyser


class FunctionState(Summary):
    """A summary in the making, with the context of the current point and the remaining budget.

    Transfer functions change it together with a `State`. After the interpretation, `close` drops what only they
    needed.
    """

    #: the most operations that are distinguished; all further ones share one unknown node
    MAX_NODES = 400
    #: the most passes over loop bodies; nested loops multiply them
    MAX_PASSES = 1_200

    def __init__(self, analyser: Analyser, function: Function, flags: Flags = ()) -> None:
        super().__init__(analyser, function, flags)
        self.loops: list[LoopState] = []
        #: the value of each return, its state, and the graphs' clock there
        self.returns: list[tuple[V, State, int]] = []
        #: the same for returns under a test for a loss that is NaN or infinite
        self.given_up: list[tuple[V, State, int]] = []
        self.passes = 0
        self.handlers: list[list[State]] = []
        #: the tests of the ifs around the current point
        self.tests: list[ir.Expr] = []
        #: the texts of members that the enclosing ifs have shown to be no tensors ("" for none)
        self.no_tensors: list[str] = []
        self.depth = 0
        #: the number of summaries that are being instantiated
        self.applying = 0
        self.statement: ir.Stmt | None = None
        #: the collections of starred expressions, by ordinal
        self.spread: dict[int, V] = {}

    def fork(self, state: State) -> State:
        """A copy of a state, charged to the budget."""
        self.spent += (len(state.env) + len(state.heap) + len(state.sym)) // 16
        return state.copy()

    @property
    def loop_ids(self) -> tuple[Source, ...]:
        return tuple([loop.id for loop in self.loops]) if self.loops else ()

    def innermost(self, outlived: tuple[Source, ...]) -> LoopState | None:
        """The innermost iteration loop around the current point that is not among ``outlived``'s makers."""
        for loop in reversed(self.loops):
            if loop.counts and loop.id not in outlived:
                return loop
        return None

    def escape(self, sources: Sources, *, scored: bool = False, logged: bool = False) -> None:
        """Record that the sources escape to unresolved code. ``scored``: to a loss, which only computes with them;
        ``logged``: to a log."""
        reached = self.graphs.closure(sources)
        if logged:
            self.log(reached)
            return
        self.escaped |= reached
        if not scored:
            self.leave(reached)

    def log(self, reached: Sources) -> None:
        """Record that unresolved code reads these sources and may store them, but runs no backward: a log."""
        self.notes.logged |= reached - self.left
        self.left |= reached
        self.used |= reached

    def give_back(self, sources: Sources) -> None:
        """Record that the function returns these sources; the caller gets the numbers alone if it is another
        process."""
        if gives_copies(self.analyser.program, self.function):
            self.log(sources)
        else:
            self.notes.returned |= sources

    def leave(self, reached: Sources) -> None:
        """Record that unresolved code may store these sources."""
        self.left |= reached
        self.notes.logged -= reached

    def record(
        self,
        state: State,
        key: Source,
        at: int,
        what: str,
        parents: Sources,
        *,
        definite: bool = False,
        unknown: bool = False,
        callee: Path | None = None,
        via: tuple[Any, ...] = (),
        model: bool = False,
        guess: bool = False,
        leaf: bool = False,
    ) -> Sources:
        """Record an operation under the state's grad mode. Returns the sources of its result."""
        if state.grad == OFF:
            return EMPTY
        if self.is_full and key not in self.graphs.nodes:
            return self.unfollowed(at)
        ambient = not state.grad & ON and bool(state.grad & AMBIENT)
        self.graphs.record(
            key,
            Node(at, what, definite, unknown, ambient, parents, callee, via, model, guess, leaf, loops=self.loop_ids),
        )
        one = frozenset((key,))
        if key in state.freed_may:  # a superset of `freed_must`
            state.freed_must -= one
            state.freed_may -= one
        return one

    def close(self) -> None:
        """Drop what only the interpretation needed, as a large project has a hundred thousand summaries."""
        self.returns.clear()
        self.given_up.clear()
        self.operands.clear()
        self.spread.clear()
        self.graphs.forget()
        if self.analyser.is_large:
            share(self, self.analyser.shared)
        stored = (*(store.loop for store in self.stores.values()), *(run.loop for run in self.runs.values()))
        for loop in (*stored, *self.notes.rounds.values()):
            if loop is not None:
                loop.breaks.clear()
                loop.continues.clear()
        self.compact()

    @property
    def is_full(self) -> bool:
        """Whether all further operations share one unknown node."""
        return len(self.graphs.nodes) >= self.MAX_NODES

    def unfollowed(self, at: int) -> Sources:
        """The single node for all operations beyond the limit."""
        self.cut_short = True
        key = ("cut",)
        if key not in self.graphs.nodes:
            self.graphs.record(key, Node(at, self.function.name, unknown=True))
        return frozenset((key,))

    def backward(self, state: State, value: V, at: int, *, retain: bool = False) -> None:
        """Record a backward() on ``value``: it is attached, and its graph is freed unless retained."""
        if not value.src:
            self.notes.blind_backward = True
            self.notes.blind_at.add(at)
            return
        reached = self.graphs.closure(value.src)
        self.graphs.evidence.add(value.src)
        self.backwards.append(Backward(reached, self.loop_ids, self.site(at), tuple(self.tests), retain))
        if retain:
            return
        state.freed_may |= reached
        state.freed_must |= reached


def resumed(summary: Summary) -> FunctionState:
    """A finished summary as the function state that it was, in which an expression can be evaluated again."""
    assert isinstance(summary, FunctionState)
    return summary
