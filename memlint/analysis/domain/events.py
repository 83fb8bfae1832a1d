"""What the code does with memory, as rules see it: few, typed, immutable events.

Every event is about one place in linted code. Three-valued facts are the strings "yes", "no", "some"
(on some paths, or for some members) and "unknown"; "some" is knowledge, "unknown" is none.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from memlint.analysis.domain.extents.extents import Weight
from memlint.finding import Confidence, Reach
from memlint.patterns import lazy_pattern

Fact = Literal["yes", "no", "some", "unknown"]
PlaceKind = Literal["local", "attribute", "global", "closure", "parameter", "buffer", "foreign"]
Over = Literal["loader", "epochs", "range", "modules", "time", "rows", "unknown"]
How = Literal["add", "average", "call", "cat", "update"]
#: what the analysis judges, and may drop for a reason: a sum that grows, what is computed from its own last value, what
#: is stored with its graph, a tensor that is stored, a tensor that grows by concatenation, a run of a model
CandidateKind = Literal["add", "carry", "retain", "tensor", "cat", "run"]
GuardKind = Literal["bare", "volatile", "early", "class"]
#: likely: where a model lies that goes through batches, in a project that names CUDA
Device = Literal["accelerator", "likely", "cpu", "unknown"]
#: sample: one small number for each sample of a batch (labels, lengths)
Size = Literal["scalar", "sample", "batch", "activation", "model", "unknown"]
#: the sizes in the order in which values know them
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
    """One step of a trace. ``decides``: the finding happens only where this place runs, or one of these other
    places."""

    site: Site
    message: str
    decides: tuple[Site, ...] | None = None


class Loop(msgspec.Struct, frozen=True, gc=False):
    """What repeats. ``kind``: a "for" or "while" loop in sight, or "calls" (a framework or a caller runs the
    function again and again). ``over``: what a for loop runs over. ``every``: how often the body runs.
    ``trips``: the number of iterations where a literal tells. ``text``: the loop in the user's words, e.g.
    ``for batch in loader`` or ``each call of training_step``."""

    kind: Literal["for", "while", "calls"]
    over: Over
    every: Literal["iteration", "epoch", "run", "unknown"]
    trips: int | None
    text: str
    site: Site
    #: only that each round brings something to the device tells that it goes through data
    assumed: bool = False
    #: a backward() runs in it
    trains: bool = False
    #: an endless loop that a count breaks off (``if step > 50: break``)
    counted: bool = False
    #: it runs over a data loader whose batches hold one sample
    single: bool = False
    #: it goes through something in steps of a batch's size, by their name, and takes a slice of it in each round
    batches: bool = False
    #: what a name stands for that it runs over: ``tqdm(loader)`` of ``bar``
    behind: str = ""

    @property
    def over_data(self) -> bool:
        """Whether its rounds are as many as there are batches, epochs or calls: what grows with them has no bound, as
        the steps of a sequence, or a handful of parts, have."""
        if self.kind == "calls" or self.every == "epoch" or self.over == "epochs":
            return True
        if self.over == "loader" and not self.assumed:
            return True
        many = self.trips is not None and self.trips >= _MANY
        return many or self.names_data or _ROUNDS.search(self.text.partition(" in ")[0].lower()) is not None

    @property
    def names_data(self) -> bool:
        """Whether what it runs over is named like a data set."""
        return _DATA.search(self.source) is not None

    @property
    def names_samples(self) -> bool:
        """Whether what it runs over is named like samples: images, episodes."""
        return _SAMPLES.search(self.source) is not None

    @property
    def ends(self) -> bool:
        """Whether its rounds are, for all that is known, the steps of one sequence or a handful of parts: what they
        leave in a local variable goes when the sequence does."""
        if self.over_data or self.trains or self.every != "iteration":
            return False
        if self.kind == "while":
            return self.counted or self.source not in ("while true", "while 1")
        counts = self.over in ("range", "time", "rows", "modules") or self.source.startswith("reversed(range(")
        return counts and not self.names_samples

    @property
    def source(self) -> str:
        """What it runs over in the user's words, all in small letters; of a while loop, all of it."""
        return (self.text if self.kind == "while" else self.behind or self.text.partition(" in ")[2]).lower()


#: rounds that a literal tells to be no steps of one sequence
_MANY = 100
#: names of what counts batches
_ROUNDS = lazy_pattern(r"batch|\bepoch|\bit(er(ation)?s?|r)?\b")
#: names of what holds a data set
_DATA = lazy_pattern(r"loader|data(set)?s?\b|batches|iterator")
#: names of how many samples, batches or episodes there are
_SAMPLES = lazy_pattern(
    r"samples?\b|images?\b|_set\b|episode|batch|iter|epoch|_(train|test|val|valid)\b|games?\b|rounds?\b"
)


class Value(msgspec.Struct, frozen=True, gc=False):
    """A value at the end of the iteration that made it.

    ``attached``: it carries an autograd graph. ``freed``: a backward of the same iteration has freed that
    graph. ``text``: its source, shortened. ``origin``: from the call that made the graph to the store.
    ``certainty``: how well ``attached`` (or, without a graph, ``device`` and ``size``) is known.
    """

    attached: Fact
    freed: Fact
    device: Device
    size: Size
    text: str
    certainty: Confidence
    origin: tuple[Step, ...]
    #: the graph is known from a backward() on the value, not from a model call that was seen
    by_backward: bool = False
    #: small: at most a few hundred bytes a sample; large: pictures, maps of features, scores of a vocabulary
    weight: Weight = "unknown"
    #: all that was collected is brought to the host in the end
    moved_later: bool = False
    #: it is a tuple, list or dictionary of tensors, which has none of their methods
    several: bool = False
    #: it was moved to the host with its graph, whose saved activations stay on the device
    moved: bool = False

    @property
    def graph_device(self) -> Device:
        """Where the saved activations are of the graph that it carries."""
        return "unknown" if self.moved else self.device


class Place(msgspec.Struct, frozen=True, gc=False):
    """Where a value is stored. ``text`` is its source (``self.losses``, ``stats['loss']``)."""

    kind: PlaceKind
    text: str


class Cut(msgspec.Struct, frozen=True, gc=False):
    """Where the graph of what is stored can be cut: the expressions that bring it in, or, where there are none, a
    statement ``start`` at the beginning of each round. ``text``: what is cut, as its source.
    ``doubt``: what keeps us from the proof that nobody would notice, a clause; "" where it is proven.
    ``met``: where what is stored without a graph meets a tensor on the device, so that it has to stay there."""

    sites: tuple[Site, ...]
    text: str
    doubt: str
    start: str = ""
    met: str = ""


class Gather(msgspec.Struct, frozen=True, gc=False):
    """How a tensor that is grown in a loop becomes a list. ``start`` and ``end``: the statements before and behind
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
    """``site``: where a finding on it belongs. ``function``: qualified name of the function around it.
    ``certainty``: how well everything but the value is known. ``trace``: what led here."""

    site: Site
    function: str
    certainty: Confidence = "high"
    trace: tuple[Step, ...] = ()


class Retain(Event, frozen=True, gc=False, kw_only=True):
    """A value enters a place that outlives the iteration, and stays.

    ``how``: append (also extend, add, put …), key, attribute, global, buffer, closure.
    ``needed``: the graph is wanted: a later backward reaches it, or it leaves to code that cannot be followed.
    ``reset``: what empties the place, and how rarely, in words ("" for nothing in sight).
    ``emptied``: another method that empties it, at the end of an epoch most often ("" for none in sight).
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
    """A place is rebuilt from its own previous value.

    ``how``: add (a sum), average (old * a + new * b), call (a model or function of the old value), cat,
    update (any other in-place change). ``value`` is what comes in.
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
    #: what has grown is given to a callee in each round, its parts are those of one batch, or its rows a few numbers
    bounded: bool = False


class ModelCall(Event, frozen=True, gc=False, kw_only=True):
    """A model runs while autograd records.

    ``evaluation``: why this is an evaluation: "eval" (the model was put into eval mode), "spent" (every use of the
    output cuts its graph), "kept" (its graph is kept round by round, and no backward comes), "name" (only the
    function's name says so); or why it needs no graph in training: "cut" (every use of the output cuts its graph),
    "beside" (a teacher in eval mode, beside a model in train mode that learns from it); "" (none of these).
    ``wanted``: why gradients are wanted ("" if nothing says so).
    ``retained``: the place that keeps the graph beyond the iteration, which is reported ("" for none), and ``rounds``
    the loop whose rounds it does so in.
    ``owner``: whether an optimizer owns the module's parameters. ``guard_end``: a guard that ends before the call, or
    has no effect, in words. ``consumed``: what becomes of the output: "detached" (every use cuts the graph), "escapes",
    "loss".
    """

    module: str
    loop: Loop | None
    evaluation: Literal["eval", "spent", "kept", "beside", "name", "cut", ""]
    wanted: str
    retained: str
    owner: Fact
    guard: str
    consumed: Literal["detached", "escapes", "loss", "dropped"]
    #: the statement at which ``retained`` takes it in
    keeping: tuple[Step, ...] = ()
    #: the model runs on the host
    on_host: bool = False
    #: the attribute of the function's object that holds the graph when it returns
    held: str = ""
    place: GuardPlace | None = None
    rounds: Loop | None = None
    #: what is called at ``site``, where the model runs in a callee
    called: str = ""
    #: the function is named as evaluations are
    named: bool = False
    #: the forward that runs is in sight, or another run of the same model is trained by
    followed: bool = False
    #: what runs is a method of a class out of sight, by a name under which libraries guard theirs
    served: bool = False
    #: where one body serves several phases: a test of the rounds without a backward, and of those that have one
    phase: str = ""
    training: str = ""
    #: another function of the class or file trains the model; this one keeps and returns nothing of what it gives
    beside_training: bool = False
    #: one of its callers leaves grad mode on, as the trace says, and another one turns it off
    unguarded: bool = False
    #: the model is known to be large whatever it is given: a pretrained transformer, an autoencoder, a detector
    large: bool = False
    #: it runs on a batch of one sample
    single: bool = False
    #: by its layers the network saves little for each row, or it runs on a single sample and is not known to be large
    small: bool = False


class Guard(Event, frozen=True, gc=False, kw_only=True):
    """A guard that guards nothing. ``kind``: bare (an expression statement), volatile, early (ends before the call),
    class (decorates a class, so that it guards the making of its objects alone).
    ``dated``: nothing in its file tells that it is run with a torch that ignores ``volatile``.
    ``small``: the function runs no network, or such alone whose graphs take little memory."""

    kind: GuardKind
    text: str
    dated: bool = False
    small: bool = False
    place: GuardPlace | None = None
