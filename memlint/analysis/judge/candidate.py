"""A store that may outlive an iteration, with the cached facts that its judgement needs."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Literal

import msgspec

from memlint.analysis.demand.needed_later import graph_needed_later
from memlint.analysis.domain.events import Loop, Value
from memlint.analysis.domain.periods import ends_soon
from memlint.analysis.domain.summary.effects import Store
from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.domain.values import Path, V
from memlint.analysis.facts.common_arguments import freed_by_callers_choice
from memlint.analysis.facts.repeats import by_requests, each_call, is_run_by_optimizer, is_training_step
from memlint.analysis.judge.carried_state import is_carried_alone, state_of
from memlint.analysis.judge.described import self_name, value_of
from memlint.analysis.judge.judged_runs import of_layers
from memlint.analysis.judge.reasons import Reason, report_store_reason
from memlint.analysis.transfer.stores.class_places import MADE
from memlint.analysis.transfer.stores.sample_keys import identifies
from memlint.finding import Confidence

if TYPE_CHECKING:
    from memlint.analysis.facts.analyser import Analyser

#: name prefixes of functions that build models, and of those that build a model or a table of its outputs
_BUILDERS = ("init__", "make_layer", "make_block", "make_stage")
_MAY_BUILD = ("build_", "create_")


class Candidate:
    """A store that may outlive an iteration, with the facts that several reasons ask for."""

    def __init__(self, analyser: Analyser, summary: Summary, store: Store) -> None:
        self.analyser = analyser
        self.summary = summary
        self.store = store
        self.incoming: V = store.entering
        #: the confidence so far, which the reasons of `DOUBTED` may lower
        self.certainty: Confidence = "high"

    @functools.cached_property
    def loop(self) -> Loop | None:
        """What repeats the store: a loop of the function, or the calls of the function. None if nothing is known to
        repeat it."""
        return _loop_of(self.analyser, self.summary, self.store)

    @functools.cached_property
    def in_module(self) -> bool:
        return _in_module(self.analyser, self.summary, self.store)

    @functools.cached_property
    def is_alone(self) -> bool:
        """Whether each call of the function is one iteration, but no known code calls it repeatedly (see
        `is_carried_alone`)."""
        summary, loop = self.summary, self.loop
        by_calls = self.store.loop is None and loop is not None and loop.kind == "calls" and summary.hook is None
        return by_calls and not is_training_step(self.analyser, summary)

    @functools.cached_property
    def is_needed(self) -> bool:
        """Whether a later backward needs the graph of the stored value."""
        return (
            not self.is_alone
            and graph_needed_later(self.analyser, self.summary, self.store)
            and self.value.freed != "yes"
        )

    @functools.cached_property
    def value(self) -> Value:
        """The stored value, as it is at the end of the iteration."""
        value = value_of(self.analyser, self.summary, self.store, self.incoming)
        if value.freed == "some" and freed_by_callers_choice(self.analyser, self.summary, self.store):
            value = msgspec.structs.replace(value, freed="yes")
        return value

    @property
    def has_no_graph(self) -> bool:
        return self.value.attached == "no"

    def report(self, effect: Literal["dropped", "low"], reason: Reason[Candidate]) -> None:
        """Report a reason to the observer, if there is one."""
        if self.analyser.observer is not None:
            report_store_reason(self.analyser, self.summary, self.store, self.loop, effect, reason)


def builds_layers(summary: Summary, store: Store) -> bool:
    """Whether the function builds layers, as far as its name tells. ``build_`` and ``create_`` do not count if the
    store is in a loop over data, or stores a model's output."""
    name = summary.function.name.lstrip("_")
    if not name.startswith(_MAY_BUILD):
        return name.startswith(_BUILDERS)
    nodes = (summary.graphs.nodes.get(item) for item in store.value.src)
    if any(node is not None and node.model for node in nodes):
        return False
    around = (summary.notes.rounds.get(item) for item in store.loops)
    return not any(loop is not None and (loop.loop.over_data or loop.loop.batches) for loop in around)


def in_few_rounds(store: Store) -> bool:
    """Whether the place lives no longer than a loop that a literal limits to a few iterations."""
    if not store.local or store.loop is None or store.loop.id not in store.loops:
        return False
    around = store.loops[: store.loops.index(store.loop.id)]
    return ends_soon(store.loop) and store.made[: len(around)] == around


def _loop_of(analyser: Analyser, summary: Summary, store: Store) -> Loop | None:
    """What repeats the store: a loop of the function, or a framework that calls the function again and again.

    A loop inside a hook covers the parts of one call. What outlives the call grows with each call.
    """
    seen = None
    if store.loop is not None:
        seen = summary.seen(store.loop)
        if store.local or summary.hook is None or seen.over == "loader":
            return seen
    if store.how == "key" and not _by_new_samples(summary, store):
        return None  # each call starts its keys from the same number, and so overwrites the entries of the last call
    if seen is None and state_of(summary, store) and is_carried_alone(analyser, summary, store):
        return each_call(summary.function)  # it reads what its last call has stored
    return _calls_from_elsewhere(analyser, summary, store) or seen


def _by_new_samples(summary: Summary, store: Store) -> bool:
    """Whether a framework's hook sets members of a dictionary by the identifiers of the samples of its batch. (The
    names that requests bring may be a handful.)"""
    keyed, by_batches = store.keyed, summary.hook is not None and not summary.answers
    return by_batches and keyed is not None and bool(keyed[1]) and identifies(*keyed)


def _calls_from_elsewhere(analyser: Analyser, summary: Summary, store: Store) -> Loop | None:
    """The calls of the function as a loop, if a framework, training code or an optimizer calls it once an iteration and
    the place outlives the call."""
    if store.local or not isinstance(store.place, Path):
        return None
    own = f"p:{self_name(summary.function)}"
    if summary.hook is not None:
        if summary.hook.every not in ("iteration", "request") or (summary.is_made_anew and store.place.root == own):
            return None
        if summary.answers and store.vague:
            return None
    elif not is_training_step(analyser, summary) and not is_run_by_optimizer(analyser, summary.function):
        return None
    if store.place.root.startswith("p:") and store.place.root != own:
        return None
    if not store.place.steps and store.place.root.startswith("p:"):
        return None
    if store.place.root.startswith(MADE):
        return None  # the function makes the object in each call
    if store.place.root.startswith("c:") and summary.function.owner(store.place.root[2:]) is None:
        return None  # a local variable of the function that defines this closure: it dies with that call
    return by_requests(analyser, summary.function) or each_call(summary.function)


def _in_module(analyser: Analyser, summary: Summary, store: Store) -> bool:
    """Whether the function is layer code: a forward, or a method that a forward uses and whose loops run over layers or
    steps. A method that trains, evaluates or loops over batches is not."""
    if of_layers(analyser, summary.function):
        return True
    function = summary.function
    if function.cls is None or not analyser.program.is_module(function.cls):
        return False
    notes = summary.notes
    trains = bool(summary.backwards or notes.evaluations or notes.trains_below) or summary.hook is not None
    given = summary.graphs.nodes_of(summary.notes.returned)
    if store.how == "call" and not any(node.definite or node.unknown or node.guess for node in given):
        return False  # it returns numbers only (sampling, decoding), so no caller can need the graph
    loop = store.loop.loop if store.loop is not None else None
    return not trains and loop is not None and loop.over != "loader" and not loop.names_data


def handed_down(summary: Summary, store: Store) -> bool:
    """Whether the place is an argument, such as a list that a forward passes to its parts. The caller's summary decides
    about it."""
    place = store.place
    own = f"p:{summary.function.own_name}"
    return isinstance(place, Path) and place.root.startswith("p:") and place.root != own
