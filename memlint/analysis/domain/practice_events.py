"""What detectors report: each event is about one place in linted code (see `memlint.analysis.domain.events`)."""

from __future__ import annotations

from typing import Literal

from memlint.analysis.domain.events import Event, Loop, Site

#: what of a function its context holds: what it returns, a view of that, what it computed on the way, what it was given
KeptTensor = Literal["output", "view", "intermediate", "input"]
#: what a cache keeps for good
CacheHolder = Literal["module", "data", "argument"]
#: a function or method that torch does not have, or one that has another name by now
NameKind = Literal["fictional", "method", "deprecated"]
#: what a reading of memory is taken for and is not: the number of objects, a tensor's or a module's bytes, what tensors
#: use, something beside what tensors use, bytes at all
Misread = Literal["objects", "tensor", "module", "used", "apart", "bytes"]
#: what goes through a loader and holds its batches: again and again, into a list, by two iterators
KeepsBatches = Literal["cycle", "list", "tee"]
#: what an except clause does while the frames of what failed are alive: what failed, anew; another run of a model; or
#: it puts the exception where it stays until the next, or among others
Recovery = Literal["retry", "run", "stored", "collected"]
#: what is wrong with a hook: it keeps what it is given, or one is added again and again
HookProblem = Literal["keeps", "piles"]
#: how a name holds the memory of what is deleted under another: it is the same, an optimizer or a schedule of its
#: parameters, an object or container that has it, its state, a part of it, a result whose graph leads to it
Hold = Literal["same", "optimizer", "schedule", "object", "container", "state", "part", "graph"]
#: what is left on, or never emptied
Diagnostic = Literal["anomaly", "history", "profiler", "metric"]


class ContextAttribute(Event, frozen=True, gc=False, kw_only=True):
    """An autograd function puts a tensor on its context as an attribute. ``place``: ``ctx.x``; ``value``: what it is
    given, as its source ("" where that is not told apart); ``small``: it is a single number; ``dropped``: backward
    takes it away, which helps where one runs; ``old``: the function is of the style that torch 1.5 and later refuse,
    whose context is the function itself."""

    kept: KeptTensor
    place: str
    value: str
    small: bool
    dropped: bool = False
    old: bool = False


class HookAdded(Event, frozen=True, gc=False, kw_only=True):
    """A hook on a module or tensor that leaks. ``added``: the call that adds it. ``loop``: what repeats, None where no
    loop is in sight that runs the module. ``place``: where it keeps what it is given ("" for one that keeps nothing),
    and ``value`` that, as its source; ``attached``: with its graph, if it has one; ``backward``: it is given gradients;
    ``removed``: it is taken away behind the loop."""

    problem: HookProblem
    added: str
    loop: Loop | None
    place: str = ""
    value: str = ""
    attached: bool = False
    backward: bool = False
    removed: bool = False


class LiveGraph(Event, frozen=True, gc=False, kw_only=True):
    """A round of a training loop ends without the backward of its graph, which variables hold while the model runs in
    the next round. ``names``: those; ``model``: what runs; ``test``: what decides over it; ``skips``: the round is left
    by a ``continue``, else the backward alone is left out."""

    names: tuple[str, ...]
    model: str
    test: str
    loop: Loop
    skips: bool


class CachedCall(Event, frozen=True, gc=False, kw_only=True):
    """A cache of the standard library over a function keeps what it is called with. ``holder``: what it keeps of most
    weight, the instance of a module or data class (``owner``) or an argument; ``argument``: the parameter that takes a
    module or tensor, if any. ``size``: how many calls are kept, None for all or for what is not known; ``bounded``: it
    is not all of them; ``plain``: it takes nothing but the instance."""

    holder: CacheHolder
    name: str
    owner: str
    decorator: str
    size: int | None
    bounded: bool
    argument: str
    plain: bool


class CachedBatches(Event, frozen=True, gc=False, kw_only=True):
    """What goes through a data loader keeps its batches. ``loader``: its source; ``given``: where it stands, if it is
    known to be a loader of torch, which can be gone through again."""

    how: KeepsBatches
    text: str
    loader: str
    given: Site | None = None


class Recover(Event, frozen=True, gc=False, kw_only=True):
    """An except clause goes on while the frames of what failed are alive. ``text``: the call, or what is stored;
    ``place``: where."""

    how: Recovery
    text: str
    place: str = ""


class ModelSnapshot(Event, frozen=True, gc=False, kw_only=True):
    """A copy of a model, or of its state, is put aside where the model is. ``loop``: the loop over epochs with which
    ``place``, a container of such copies, grows; None for the one copy of the best so far, or for one (``once``) that
    goes back into the model after a trial."""

    text: str
    model: str
    place: str
    loop: Loop | None
    once: bool = False


class KeptGraph(Event, frozen=True, gc=False, kw_only=True):
    """A backward keeps or records a graph that nothing differentiates again.

    ``kind``: retain (a graph is kept, and no other backward goes through it), gradients (``backward`` records the graph
    of the gradients, and only an optimizer reads them), inputs (as gradients, for those of an input, ``alive``), rounds
    (a backward for each member of a collection, ``alive``, keeps the graph after the last as well), result (every use
    of what ``autograd.grad`` gives cuts the graph that it records). ``word``: the literal that asks for it. ``alive``:
    the names that hold the graph while the model runs in the next round of ``loop`` (of a result: only where there is
    an accelerator). ``flag``: a parameter without which the result keeps its graph ("" for none). ``kept``: an argument
    of its own keeps the graph that was differentiated. ``sure``: no code that cannot be followed has a part in the
    graph (of retain).
    """

    kind: Literal["retain", "gradients", "inputs", "rounds", "result"]
    text: str
    word: Site
    alive: tuple[str, ...] = ()
    loop: Loop | None = None
    flag: str = ""
    kept: bool = False
    sure: bool = True


class DiagnosticLeftOn(Event, frozen=True, gc=False, kw_only=True):
    """Something that records for a look at a few steps goes on for the whole run. ``text``: what switches it on, or the
    metric object; ``name``: of the metric's class; ``loop``: what it records, None for all that runs; ``read``: what it
    recorded is written somewhere."""

    kind: Diagnostic
    text: str
    loop: Loop | None
    name: str = ""
    read: bool = False


class EmptiedCache(Event, frozen=True, gc=False, kw_only=True):
    """The allocator's cache is emptied in every round of a loop. ``data``: the loop runs over a loader, or trains.
    ``statement``: what empties it, None for a helper that does; ``alone``: nothing else stands in its block;
    ``flag``: a setting that has to hold ("" for none)."""

    text: str
    loop: Loop
    data: bool
    flag: str
    statement: Site | None
    alone: bool


class DeviceData(Event, frozen=True, gc=False, kw_only=True):
    """All samples of a data set lie on the device from the moment that it is made. ``place``: what holds them;
    ``owner``: the class of the data set, "" for one of the library."""

    place: str
    owner: str


class LoadedToDevice(Event, frozen=True, gc=False, kw_only=True):
    """A checkpoint is loaded onto the device that it was saved from. ``given``: a ``map_location`` of None.
    ``distributed``: by each process of several. ``doubt``: why loading it onto the host may be noticed, a clause.
    ``beside``: the model that copies it, nothing that is in sight, or one whose parameters it becomes
    (``assign=True``). ``name``: what is bound to it, "" for nothing."""

    text: str
    distributed: bool
    given: Site | None
    doubt: str
    beside: Literal["model", "nothing", "assigned"]
    name: str


class SingleProcess(Event, frozen=True, gc=False, kw_only=True):
    """One process spreads a model that is trained over several devices (``DataParallel``). ``text``: the call."""

    text: str


class ZeroedGradients(Event, frozen=True, gc=False, kw_only=True):
    """Gradients are filled with zeros before a forward, where they could be let go. ``text``: what does so; ``owner``:
    whose ``zero_grad`` would do; ``flag``: the ``False`` of ``set_to_none=False``, None where it is done by hand."""

    text: str
    owner: str
    flag: Site | None


class ApiUse(Event, frozen=True, gc=False, kw_only=True):
    """A name for memory that torch does not have, or has under another name. ``name``: qualified (a method's alone);
    ``text``: as it is written; ``advice``: what to do instead, a clause; ``new``: what can be written at the site for a
    name of old, "" for nothing."""

    kind: NameKind
    name: str
    text: str
    advice: str
    new: str = ""


class WrongReading(Event, frozen=True, gc=False, kw_only=True):
    """A reading of memory is taken for another. ``text``: the call; ``label``: what it is called or compared with."""

    taken_for: Misread
    text: str
    label: str


class NameOnly(Event, frozen=True, gc=False, kw_only=True):
    """A name is deleted to free memory, which another name holds that nobody reads any more. ``name``: of what;
    ``holder`` and ``how`` it holds it; ``others``: names that hold it as well, by that one or besides; ``during``: the
    call that runs meanwhile, in the ``next_round`` or in this; ``runs``: it runs a model, it does not only make or load
    one."""

    name: str
    kind: Literal["model", "checkpoint"]
    holder: str
    how: Hold
    others: tuple[str, ...]
    during: str
    next_round: bool
    runs: bool
