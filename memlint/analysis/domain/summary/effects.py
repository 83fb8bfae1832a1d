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
    """A loop that is being interpreted. ``counts``: its rounds are iterations (not layers of a model)."""

    id: Source
    loop: Loop
    counts: bool
    breaks: list[State] = field(default_factory=list)
    continues: list[State] = field(default_factory=list)
    #: it runs over models, agents or heads
    over_objects: bool = False
    #: names bound in the body
    bound: frozenset[str] = frozenset()
    #: those of them that each round gives a value before it reads them
    anew: frozenset[str] = frozenset()
    #: names that count the rounds: the target of range, the first target of enumerate
    counters: frozenset[str] = frozenset()
    #: all names that the loop's header binds
    targets: frozenset[str] = frozenset()
    body: tuple[ir.Stmt, ...] = ()
    #: the symbols of what a round is given: another object in each
    items: Sources = EMPTY
    #: its rounds put something else in the place of each member of what it runs over
    replaces: bool = False


@dataclass(slots=True)
class Store:
    """A store that may outlive an iteration: raw material of Retain and Carry.

    ``place``: a heap object's key, a `Path`, or ("var", name). ``loop``: the innermost loop that it outlives,
    None for the function's whole run. ``freed``/``ended``: the graph's fate at the end of an iteration.
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
    #: the loops around the making of the place
    made: tuple[Source, ...] = ()
    local: bool = False
    cleared: str = ""
    freed: Fact | None = None
    ended: bool = False
    lifted: int = 0
    origin: str = ""
    grad: int = ON
    guessed: bool = False
    #: what came in, for a carry
    incoming: V | None = None
    depth: int = 0
    #: part of its graph is freed on every path, so that no backward can run through it again
    dead: bool = False
    #: a backward has freed the graph before it is stored, which no path can take back
    spent: bool = False
    #: objects that the place is rebuilt into
    objs: Sources = EMPTY
    #: the place is made anew in each round of an outer loop over data
    inner: bool = False
    #: a carry whose way back to the previous value leads through a call that cannot be resolved
    loose: bool = False
    #: of what grows by cat: each round selects rows of it by an index
    selected: bool = False
    #: of a record: one of its members has a graph and is no number, on any path
    sure_part: bool = False
    #: its module is in eval mode then
    evaluates: bool = False
    #: what is stored is a tuple or dictionary, of which others read the members
    record: bool = False
    #: the tests of the ifs around it
    tests: tuple[ir.Expr, ...] = ()
    #: the members of a tuple or dictionary that is stored, by position or key
    parts: dict[str, V] = field(default_factory=dict)


@dataclass(slots=True)
class ModelRun:
    """A model that runs while autograd may record."""

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
    #: what runs: the module itself, or a method of it by name
    method: str = "forward"
    #: it is a method of a class out of sight, by a name under which libraries guard theirs
    served: bool = False
    #: the callee's summary and its run, where the model runs in a callee
    origin: tuple[Summary, ModelRun] | None = None
    #: it runs on a tensor of ones or zeros, which is there for its shape
    probes: bool = False
    #: it runs on what a factory of torch has made up, be it noise
    drawn: bool = False
    #: the tests of the ifs around it, where it runs in the function itself
    tests: tuple[ir.Expr, ...] = ()
    #: what is called here, where the model runs in a callee
    called: str = ""


@dataclass(slots=True)
class CallRecord:
    """A call of a project function: with what, under which grad mode, and where its result is."""

    callee: tuple[str, str]
    at: int
    grad: int
    args: dict[str, V]
    result: V
    loops: tuple[Source, ...]
    counts: bool
    modes: dict[Source, bool | None] = field(default_factory=dict)
    #: whether the module whose method it is is in train mode, None for not known
    trains: bool | None = None
    #: made in a loop over data: once a batch
    each_batch: bool = False
    #: the grad mode where the thread is started that makes it, None for a call of this thread
    started: int | None = None


class Backward(NamedTuple):
    """A backward: the sources that it reaches, the loops around it, its place, and the tests of the ifs around it."""

    reached: Sources
    loops: tuple[Source, ...]
    site: Site
    tests: tuple[ir.Expr, ...] = ()

    def excludes(self, store: Store) -> bool:
        """Whether it stands on the other side of a test than the store."""
        return excluded(self.tests, store.tests)


class Outward(NamedTuple):
    """The symbols among the sources of a finished summary: all of them that a caller can know. ``freed``: whether for
    certain; ``reached``: by each backward; ``escaped``: whether to a loss alone; ``left``: without what escaped;
    ``given``: of the modules that it hands out."""

    freed: tuple[tuple[Path, bool], ...]
    reached: tuple[tuple[Path, ...], ...]
    escaped: tuple[tuple[Path, bool], ...]
    left: tuple[Path, ...]
    used: tuple[Path, ...]
    given: tuple[Path, ...]


def symbols(sources: Iterable[Source]) -> tuple[Path, ...]:
    """Those of some sources that are symbols, which alone mean something to a caller."""
    return tuple([item for item in sources if isinstance(item, Path)])


def excluded(tests: tuple[ir.Expr, ...], others: tuple[ir.Expr, ...]) -> bool:
    """Whether two places stand on the two sides of one test, by the tests of the ifs around each."""
    return any(_negated(a, b) or _negated(b, a) for a in tests for b in others)


def _negated(a: ir.Expr, b: ir.Expr) -> bool:
    return isinstance(a, ir.Unary) and a.op == "not" and a.at == b.at and a.operand is b
