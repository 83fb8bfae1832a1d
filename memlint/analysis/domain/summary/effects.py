"""The effects of a function: stores, model runs, calls and backwards, and what callers see of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from memlint.analysis.domain.events import Fact, Loop, PlaceKind, Site, Step
from memlint.analysis.domain.state import ON, State
from memlint.analysis.domain.values import EMPTY, Path, Source, Sources, V
from memlint.ir import nodes as ir

if TYPE_CHECKING:
    from memlint.analysis.domain.summary.summary import Summary


@dataclass(slots=True, eq=False)
class LoopState:
    """A loop during its interpretation. ``counts``: its iterations are training or evaluation steps, not layers of a
    model."""

    id: Source
    loop: Loop
    counts: bool
    breaks: list[State] = field(default_factory=list)
    continues: list[State] = field(default_factory=list)
    #: it runs over models, agents or heads
    over_objects: bool = False
    #: names bound in the body
    bound: frozenset[str] = frozenset()
    #: those of `bound` that each iteration assigns before it reads them
    anew: frozenset[str] = frozenset()
    #: names that count the iterations: the target of range, the first target of enumerate
    counters: frozenset[str] = frozenset()
    #: all names that the loop's header binds
    targets: frozenset[str] = frozenset()
    body: tuple[ir.Stmt, ...] = ()
    #: the symbols of an iteration's items, which are different objects in each
    items: Sources = EMPTY
    #: each iteration replaces a member of the iterable
    replaces: bool = False


class Spot(NamedTuple):
    """A place that a value is stored in, its kind, and its source text."""

    place: Source
    kind: PlaceKind
    text: str


@dataclass(slots=True)
class Store:
    """A store that may outlive an iteration: the raw material of Retain and Carry.

    ``place``: a heap object's key, a `Path`, or ("var", name). ``loop``: the innermost loop that it outlives, None for
    the whole run of the function. ``freed`` / ``ended``: whether the graph is freed, and the store lasts, at the end of
    an iteration.
    """

    key: Source
    kind: str  # retain | carry
    how: str
    place: Source
    place_kind: PlaceKind
    place_text: str
    value: V
    site: Site
    trace: tuple[Step, ...]
    loop: LoopState | None
    loops: tuple[Source, ...]
    text: str
    #: the loops around the allocation of the place
    made: tuple[Source, ...] = ()
    local: bool = False
    cleared: str = ""
    freed: Fact | None = None
    ended: bool = False
    lifted: int = 0
    origin: str = ""
    grad: int = ON
    guessed: bool = False
    #: for a carry, the incoming value
    incoming: V | None = None
    depth: int = 0
    #: a part of its graph is freed on every path, so that no backward can run through it again
    dead: bool = False
    #: a backward has freed the graph before the store, on every path
    spent: bool = False
    #: the objects that the place is rebuilt into
    objs: Sources = EMPTY
    #: each iteration of an outer loop over data creates the place anew
    inner: bool = False
    #: a carry that depends on its previous value only through an unresolved call
    loose: bool = False
    #: for growth by cat: each iteration selects rows by an index
    selected: bool = False
    #: for a record: one of its members has a graph and is no number, on every path
    sure_part: bool = False
    #: its module is in eval mode at the store
    evaluates: bool = False
    #: the stored value is a tuple or dictionary whose members are read elsewhere
    record: bool = False
    #: the parameter that identifies the samples by which a dictionary's members are set, and the key of the member of
    #: it that does (``batch["image_id"]``); "" for the parameter itself
    keyed: tuple[str, str] | None = None
    #: the tests of the ifs around it
    tests: tuple[ir.Expr, ...] = ()
    #: nothing tells what kind of container it enters, which may bound what it keeps
    vague: bool = False
    #: the members of a tuple or dictionary that is stored, by position or key
    parts: dict[str, V] = field(default_factory=dict)

    @property
    def entering(self) -> V:
        """The value that enters the place: for a carry the incoming one, else the stored one."""
        return self.incoming or self.value


@dataclass(slots=True)
class ModelRun:
    """A model run that autograd may record."""

    key: Source
    site: Site
    text: str
    module: V
    loops: tuple[Source, ...]
    grad: int
    mode: bool | None
    value: V
    node: Source
    trace: tuple[Step, ...] = ()
    resolved: bool = True
    loop: LoopState | None = None
    depth: int = 0
    mode_key: Source = None
    #: the method that runs; "forward" for the module itself
    method: str = "forward"
    #: a method of an unresolved class, with a name under which libraries have a guard
    served: bool = False
    #: the callee's summary and its run, if the model runs in a callee
    origin: tuple[Summary, ModelRun] | None = None
    #: its input is a tensor of ones or zeros, given for its shape
    probes: bool = False
    #: its input comes from a tensor factory, such as noise
    drawn: bool = False
    #: the tests of the enclosing ifs, if it runs in the function itself
    tests: tuple[ir.Expr, ...] = ()
    #: the text of the callee here, if the model runs in a callee
    called: str = ""

    @property
    def marks(self) -> Sources:
        """The graph sources of the output."""
        return self.value.src | {self.node}


@dataclass(slots=True)
class CallRecord:
    """A call of a project function: its arguments, grad mode, modules' modes and result."""

    callee: tuple[str, str]
    at: int
    grad: int
    args: dict[str, V]
    result: V
    loops: tuple[Source, ...]
    counts: bool
    modes: dict[Source, bool | None] = field(default_factory=dict)
    #: whether the receiver is a module in train mode; None for unknown
    trains: bool | None = None
    #: the call is in a loop over data, so it runs once a batch
    each_batch: bool = False
    #: the grad mode where the calling thread is started; None for a call in this thread
    started: int | None = None


class Backward(NamedTuple):
    """A backward: the sources that it reaches, the enclosing loops, its place, the tests of the enclosing ifs, whether
    it keeps the graph for certain (``retain_graph=True``), and whether a generator runs it, between two items."""

    reached: Sources
    loops: tuple[Source, ...]
    site: Site
    tests: tuple[ir.Expr, ...] = ()
    keeps: bool = False
    lazy: bool = False

    def excludes(self, store: Store) -> bool:
        """Whether the backward and the store are in different branches of one test."""
        return excluded(self.tests, store.tests)


class Outward(NamedTuple):
    """The symbols among the sources of a finished summary, which are all that a caller can see. ``freed``: with whether
    on every path; ``reached``: by each backward, with whether it keeps the graph; ``escaped``: with whether to a loss
    alone; ``left``: without those in ``escaped`` and ``logged``; ``arrays``: what NumPy converts on every path, which
    raises for a graph; ``given``: of the modules that it passes to unresolved code."""

    freed: tuple[tuple[Path, bool], ...]
    reached: tuple[tuple[tuple[Path, ...], bool], ...]
    escaped: tuple[tuple[Path, bool], ...]
    left: tuple[Path, ...]
    logged: tuple[Path, ...]
    used: tuple[Path, ...]
    arrays: tuple[Path, ...]
    given: tuple[Path, ...]


def symbols(sources: Iterable[Source]) -> tuple[Path, ...]:
    """The symbols among some sources, which alone mean something to a caller."""
    return tuple([item for item in sources if isinstance(item, Path)])


def excluded(tests: tuple[ir.Expr, ...], others: tuple[ir.Expr, ...]) -> bool:
    """Whether two places are in different branches of one test, by the tests of the enclosing ifs."""
    return any(_negated(a, b) or _negated(b, a) for a in tests for b in others)


def _negated(a: ir.Expr, b: ir.Expr) -> bool:
    return isinstance(a, ir.Unary) and a.op == "not" and a.at == b.at and a.operand is b
