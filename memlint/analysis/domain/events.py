"""The events that rules read: few, typed and immutable facts about memory.

Every event is about one place in linted code. Three-valued facts are the strings "yes", "no", "some" (on some paths, or
for some members) and "unknown"; "some" is knowledge, "unknown" is none.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from memlint.analysis.domain.extents.extents import Weight
from memlint.finding import Confidence, Reach
from memlint.patterns import lazy_pattern

Fact = Literal["yes", "no", "some", "unknown"]
PlaceKind = Literal["local", "attribute", "global", "closure", "parameter", "buffer", "foreign"]
Over = Literal["loader", "epochs", "range", "modules", "time", "rows", "requests", "unknown"]
How = Literal["add", "average", "call", "cat", "update"]
#: what the analysis judges, and may drop for a reason: a growing sum, a place computed from its previous value, a value
#: stored with its graph, a stored tensor, a tensor that grows by concatenation, a model run
CandidateKind = Literal["add", "carry", "retain", "tensor", "cat", "run"]
GuardKind = Literal["bare", "volatile", "early", "class", "and", "async", "route"]
#: likely: the device of a model that runs on batches, in a project that names CUDA
Device = Literal["accelerator", "likely", "cpu", "unknown"]
#: sample: one small number for each sample of a batch (labels, lengths)
Size = Literal["scalar", "sample", "batch", "activation", "model", "unknown"]
#: the sizes, by the constants of `memlint.analysis.domain.values`
SIZES: tuple[Size, ...] = ("scalar", "sample", "batch", "activation", "model", "unknown", "unknown")


class Site(msgspec.Struct, frozen=True, gc=False, order=True):
    """A place in code: the module's path, its unit's index, the ordinal of a statement or expression."""

    path: str
    unit: int
    at: int


class Reached(msgspec.Struct, frozen=True, gc=False):
    """Whether code is used and can run. ``reason``: a clause that says why not; ``site``: the place that the reason is
    about."""

    reach: Reach
    reason: str
    site: Site


class Step(msgspec.Struct, frozen=True, gc=False):
    """One step of a trace. ``decides``: the finding happens only if this place runs, or one of these other places."""

    site: Site
    message: str
    decides: tuple[Site, ...] | None = None


class Loop(msgspec.Struct, frozen=True, gc=False):
    """What repeats. ``kind``: a "for" or "while" loop, or "calls" (a framework or a caller runs the function again and
    again). ``over``: what a for loop iterates over. ``every``: how often the body runs. ``trips``: the number of
    iterations if a literal tells. ``text``: the loop in the user's words, e.g. ``for batch in loader`` or ``each call
    of training_step``."""

    kind: Literal["for", "while", "calls"]
    over: Over
    every: Literal["iteration", "epoch", "run", "unknown"]
    trips: int | None
    text: str
    site: Site
    #: the only evidence that it runs over data is that each iteration moves a value to the device
    assumed: bool = False
    #: a backward() runs in it
    trains: bool = False
    #: an endless loop that breaks at a count (``if step > 50: break``)
    counted: bool = False
    #: it runs over a data loader whose batches hold one sample
    single: bool = False
    #: it steps by a batch size, as named, and takes a slice in each iteration
    batches: bool = False
    #: the expression that its iterable's name is bound to: ``tqdm(loader)`` for ``bar``
    behind: str = ""

    @property
    def over_data(self) -> bool:
        """Whether it has one iteration for each batch, epoch or call. What grows with them has no bound, unlike with
        the steps of a sequence or a handful of parts."""
        if self.kind == "calls" or self.every == "epoch" or self.over == "epochs":
            return True
        if self.over == "loader" and not self.assumed:
            return True
        many = self.trips is not None and self.trips >= _MANY
        return many or self.names_data or _ROUNDS.search(self.text.partition(" in ")[0].lower()) is not None

    @property
    def names_data(self) -> bool:
        """Whether its iterable is named like a data set."""
        return _DATA.search(self.source) is not None

    @property
    def names_samples(self) -> bool:
        """Whether its iterable is named like samples: images, episodes."""
        return _SAMPLES.search(self.source) is not None

    @property
    def ends(self) -> bool:
        """Whether its iterations are, as far as is known, the steps of one sequence or a handful of parts: their local
        values go when the sequence ends."""
        if self.over_data or self.trains or self.every != "iteration":
            return False
        if self.kind == "while":
            return self.counted or self.source not in ("while true", "while 1")
        counts = self.over in ("range", "time", "rows", "modules") or self.source.startswith("reversed(range(")
        return counts and not self.names_samples

    @property
    def source(self) -> str:
        """The text of its iterable in lower case; for a while loop, its whole text."""
        return (self.text if self.kind == "while" else self.behind or self.text.partition(" in ")[2]).lower()


#: with at least so many iterations, by a literal, a loop is not over the steps of one sequence
_MANY = 100
#: names of loop variables that count batches
_ROUNDS = lazy_pattern(r"batch|\bepoch|\bit(er(ation)?s?|r)?\b")
#: names of data sets and loaders
_DATA = lazy_pattern(r"loader|data(set)?s?\b|batches|iterator")
#: names of numbers of samples, batches or episodes
_SAMPLES = lazy_pattern(
    r"samples?\b|images?\b|_set\b|episode|batch|iter|epoch|_(train|test|val|valid)\b|games?\b|rounds?\b"
)


class Value(msgspec.Struct, frozen=True, gc=False):
    """A value at the end of the iteration that made it.

    ``attached``: it carries an autograd graph. ``freed``: a backward of the same iteration has freed that graph.
    ``text``: its source, shortened. ``origin``: from the call that made the graph to the store. ``certainty``: how well
    ``attached`` (or, without a graph, ``device`` and ``size``) is known.
    """

    attached: Fact
    freed: Fact
    device: Device
    size: Size
    text: str
    certainty: Confidence
    origin: tuple[Step, ...]
    #: the graph is known from a backward() on the value, not from a known model call
    by_backward: bool = False
    #: small: at most a few hundred bytes a sample; large: pictures, feature maps, scores of a vocabulary
    weight: Weight = "unknown"
    #: the whole collection is moved to the host in the end
    moved_later: bool = False
    #: it is a tuple, list or dictionary of tensors, which lacks tensor methods
    several: bool = False
    #: it was moved to the host with its graph, whose saved tensors stay on the device
    moved: bool = False

    @property
    def graph_device(self) -> Device:
        """The device of the saved tensors of its graph."""
        return "unknown" if self.moved else self.device


class Place(msgspec.Struct, frozen=True, gc=False):
    """Where a value is stored. ``text`` is its source (``self.losses``, ``stats['loss']``)."""

    kind: PlaceKind
    text: str


class Cut(msgspec.Struct, frozen=True, gc=False):
    """Where the graph of a stored value can be cut: the expressions that bring it in, or, if there are none, a
    statement ``start`` at the beginning of each iteration. ``text``: the source of what is cut. ``doubt``: why the
    change is not proved safe, a clause; "" if it is proved. ``met``: where the stored value, without a graph, meets a
    tensor on the device, so that it has to stay there."""

    sites: tuple[Site, ...]
    text: str
    doubt: str
    start: str = ""
    met: str = ""


class Gather(msgspec.Struct, frozen=True, gc=False):
    """How a tensor that grows in a loop becomes a list. ``start`` and ``end``: the statements before and after
    ``loop``; ``name``: the list; ``part``: what ``statement`` adds. ``doubt``: as of a `Cut`."""

    loop: Site
    statement: Site
    part: Site
    name: str
    start: str
    end: str
    doubt: str


class GuardPlace(msgspec.Struct, frozen=True, gc=False):
    """Where a guard against autograd belongs: over ``function``, or around the statements from ``first`` to ``last``.
    ``doubt``: as of a `Cut`."""

    function: Site | None
    first: Site | None
    last: Site | None
    doubt: str


class Event(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """``site``: the place of a finding. ``function``: the qualified name of the function around it. ``certainty``: how
    well everything but the value is known. ``trace``: what led here."""

    site: Site
    function: str
    certainty: Confidence = "high"
    trace: tuple[Step, ...] = ()


class Retain(Event, frozen=True, gc=False, kw_only=True):
    """A value enters a place that outlives the iteration, and stays.

    ``how``: append (also extend, add, put …), key, attribute, global, buffer, closure. ``needed``: a later backward
    needs the graph, or it escapes to unresolved code. ``reset``: what empties the place, and how rarely, in words (""
    for nothing known). ``emptied``: another method that empties it, usually at the end of an epoch ("" for none known).
    ``in_model_loop``: a missing no_grad is the cause of the graph (an evaluation).
    """

    value: Value
    place: Place
    loop: Loop
    how: str
    needed: bool
    reset: str
    emptied: str = ""
    in_model_loop: bool = False
    cut: Cut | None = None


class Carry(Event, frozen=True, gc=False, kw_only=True):
    """A place is computed from its own previous value.

    ``how``: add (a sum), average (old * a + new * b), call (a model or function of the old value), cat, update (any
    other in-place change). ``value``: the incoming value.
    """

    value: Value
    place: Place
    loop: Loop
    how: How
    needed: bool
    reset: str
    emptied: str = ""
    in_model_loop: bool = False
    cut: Cut | None = None
    gather: Gather | None = None
    #: each iteration passes it to a callee, or its parts are those of one batch, or its rows are a few numbers
    bounded: bool = False
    #: the loop also reads what has grown so far
    read: bool = False


class ModelCall(Event, frozen=True, gc=False, kw_only=True):
    """A model runs while autograd records.

    ``evaluation``: why this is an evaluation: "eval" (the model was put into eval mode), "spent" (every use of the
    output cuts its graph), "kept" (a place keeps its graph in each iteration, and no backward comes), "name" (only the
    function's name says so); or why training does not need the graph: "cut" (every use of the output cuts its graph),
    "beside" (a teacher in eval mode beside a model that learns from it); "" (none of these). ``retained``: the reported
    place that keeps the graph beyond the iteration ("" for none), and ``rounds`` the loop in whose iterations it does.
    ``owner``: whether an optimizer owns the module's parameters. ``guard``: a guard that ends before the call, or has
    no effect, in words. ``consumed``: how the output is used: "detached" (every use cuts the graph), "escapes", "loss",
    "dropped".
    """

    module: str
    loop: Loop | None
    evaluation: Literal["eval", "spent", "kept", "beside", "name", "cut", ""]
    retained: str
    owner: Fact
    guard: str
    consumed: Literal["detached", "escapes", "loss", "dropped"]
    #: the statement that stores it in ``retained``
    keeping: tuple[Step, ...] = ()
    #: the model runs on the host
    on_host: bool = False
    #: the attribute of ``self`` that holds the graph at the function's exit
    held: str = ""
    place: GuardPlace | None = None
    rounds: Loop | None = None
    #: the callee at ``site``, if the model runs in a callee
    called: str = ""
    #: the function is named like an evaluation
    named: bool = False
    #: the forward is resolved, or training goes through another run of the same model
    followed: bool = False
    #: a method of an unresolved class runs, with a name under which libraries have a guard
    served: bool = False
    #: for one body of several phases: a test of the iterations without a backward, and of those with one
    phase: str = ""
    training: str = ""
    #: another function of the class or file trains the model, and this one stores and returns nothing of its output; or
    #: this one is named as an evaluation and collects the outputs of all batches
    beside_training: bool = False
    #: one of its callers leaves grad mode on, as the trace shows, and another one turns it off
    unguarded: bool = False
    #: the model is large for any input: a pretrained transformer, an autoencoder, a detector
    large: bool = False
    #: it runs on a batch of one sample
    single: bool = False
    #: its layers save little for each row, or it runs on a single sample and is not known to be large
    small: bool = False


class Guard(Event, frozen=True, gc=False, kw_only=True):
    """A guard without effect. ``kind``: bare (an expression statement), volatile, early (ends before the call), class
    (decorates a class, so that it guards only the constructor), and (``with guard and other:``, which enters the other
    one alone), async (decorates a coroutine function, whose body runs later), route (decorates what a route has
    registered without it). ``dated``: nothing in its file shows that it runs with
    a torch that ignores ``volatile``. ``small``: the function runs no network, or only networks whose graphs take
    little memory."""

    kind: GuardKind
    text: str
    dated: bool = False
    small: bool = False
    place: GuardPlace | None = None
