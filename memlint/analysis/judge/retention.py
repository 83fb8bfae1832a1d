"""Why a store is no retention, or one of low confidence: tables of named reasons in a fixed order."""

from __future__ import annotations

from memlint.analysis.demand.collected_whole import needed_as_one_tensor
from memlint.analysis.demand.graph_origins import is_of_new_leaves
from memlint.analysis.demand.needed_later import of_evaluation
from memlint.analysis.domain.periods import FEW, ends_early
from memlint.analysis.domain.summary.effects import Store
from memlint.analysis.domain.values import DATA
from memlint.analysis.facts.common_arguments import frozen_by_callers, left_out
from memlint.analysis.judge.bounded_places import (
    begun_by_inner_loop,
    ends_with_members,
    holds_layers,
    once_in_a_loop,
    reset_after_backward,
)
from memlint.analysis.judge.candidate import Candidate, builds_layers, handed_down, in_few_rounds
from memlint.analysis.judge.carried_state import begun_at_first_step
from memlint.analysis.judge.confidence import (
    adds_a_graph,
    from_last_call,
    goes_through_data,
    held_already,
    in_trial,
    is_moved_member,
    is_trained_by,
    may_sum_itself,
    of_one_step,
    once_a_batch,
    rebuilt_each_batch,
    reset_elsewhere,
    would_raise,
)
from memlint.analysis.judge.judged_runs import of_layers
from memlint.analysis.judge.reasons import Reason
from memlint.analysis.transfer.modules import inert_guards
from memlint.analysis.transfer.stores.carry import PART
from memlint.analysis.transfer.stores.collected import becomes_array, is_multiplied, proved_free, trained_on
from memlint.analysis.transfer.stores.first_round import in_one_round
from memlint.analysis.transfer.stores.loss_terms import is_returned_and_reset
from memlint.analysis.transfer.stores.stores import carried_loosely


def _is_anew(store: Store) -> bool:
    """Whether the loop assigns a carried variable before it reads it. The loop itself forgets what is no container."""
    is_variable = isinstance(store.place, tuple) and store.place[:1] == ("var",)
    return store.kind == "carry" and is_variable and store.loop is not None and store.place[1] in store.loop.anew


def _is_number_on_a_path(one: Candidate) -> bool:
    record = bool(one.store.parts) or one.store.text.startswith(("(", "[", "{"))
    return one.incoming.may_be(DATA) and not one.incoming.objs and not record


#: the reason after which the losses of one batch may still be summed for one backward
ONE_BATCH: Reason[Candidate] = Reason(
    "one-batch",
    "each batch makes {place} anew, so it holds the parts of one batch and does not grow from batch to batch",
    lambda one: one.store.local and one.store.how != "call" and rebuilt_each_batch(one.summary, one.store),
)

#: the reason after which the losses of several rounds may still be summed for one backward
BEGUN_BEHIND: Reason[Candidate] = Reason(
    "begun-behind-backward",
    "a backward() runs through {place}, which is then begun anew",
    lambda one: reset_after_backward(one.store),
)

#: a store is no finding if one of these applies
DROPPED: tuple[Reason[Candidate], ...] = (
    Reason(
        "builds-layers",
        "{function} is named like a function that builds layers, whose loops run over layers and not over data",
        lambda one: builds_layers(one.summary, one.store),
    ),
    Reason(
        "not-repeated",
        "nothing is known to repeat this line: no loop that {place} outlives, and no framework or training code that "
        "calls {function} once an iteration",
        lambda one: one.loop is None,
    ),
    Reason(
        "does-not-last",
        "what {place} gets here is replaced, emptied or deleted before the iteration ends",
        lambda one: not one.store.ended,
    ),
    Reason(
        "emptied-soon",
        "{place} is emptied every few iterations, by a literal period",
        lambda one: one.store.cleared == FEW,
    ),
    Reason(
        "loop-of-layers",
        "{function} is a forward, or another method of a module that trains nothing: its loop runs over layers, heads "
        "or time steps, and {place} goes when the call returns",
        lambda one: one.store.local and one.in_module,
    ),
    ONE_BATCH,
    Reason(
        "written-by-forward",
        "a forward writes {place}, and each call replaces what the last one left there",
        lambda one: not one.store.local and one.in_module and not from_last_call(one.analyser, one.summary, one.store),
    ),
    Reason(
        "argument-of-forward",
        "{place} is an argument that a forward hands to its parts: how long it lives, the caller says",
        lambda one: handed_down(one.summary, one.store) and of_layers(one.analyser, one.summary.function),
    ),
    Reason(
        "may-be-trained-by",
        "somebody may train by what is put into {place}",
        lambda one: (
            one.store.kind == "carry"
            and one.store.key[-1] == PART
            and not one.store.spent
            and not of_evaluation(one.summary, one.incoming)
        ),
    ),
    Reason(
        "made-for-gradients",
        "{place} collects leaves that each iteration makes, or what is computed from them: their gradients are wanted",
        lambda one: (
            one.store.kind == "retain"
            and one.store.loop is not None
            and is_of_new_leaves(one.summary, one.incoming.src, one.store.loop.id)
        ),
    ),
    Reason(
        "unknown-graph",
        "whether {value} has an autograd graph is unknown: what makes it cannot be resolved",
        lambda one: one.value.attached == "unknown",
    ),
    Reason(
        "holds-layers",
        "{place} collects layers, which are put into a module",
        lambda one: holds_layers(one.summary, one.store),
    ),
    Reason(
        "begun-by-inner-loop",
        "the first round of an inner loop gives {place} a new value",
        lambda one: begun_by_inner_loop(one.store),
    ),
    Reason(
        "few-rounds",
        "{place} lives no longer than {loop}, which a literal limits to a few rounds",
        lambda one: in_few_rounds(one.store),
    ),
    Reason(
        "one-round",
        "a test lets this line run in one round of {loop} only",
        lambda one: once_in_a_loop(one.store) or in_one_round(one.summary, one.store),
    ),
    Reason(
        "new-each-round",
        "each round gives {place} a new value before it reads it",
        lambda one: _is_anew(one.store),
    ),
    BEGUN_BEHIND,
    Reason(
        "new-each-sequence",
        "{place} is begun anew at the first step of each sequence",
        lambda one: begun_at_first_step(one.analyser, one.summary, one.store),
    ),
    Reason(
        "eval-forward",
        "a forward in eval mode writes {place}: whether it records is decided where the model is called",
        lambda one: (
            not one.has_no_graph
            and one.store.evaluates
            and one.summary.hook is not None
            and one.summary.hook.grad == "ambient"
        ),
    ),
    Reason(
        "would-raise",
        "the backward of the next round would raise if {place} still had this graph: a program that runs resets it "
        "somewhere",
        lambda one: (
            one.store.kind == "carry"
            and one.store.how == "call"
            and bool(one.store.lifted)
            and one.value.freed == "yes"
        ),
    ),
    Reason(
        "trained-by",
        "a backward() of the same round runs through {place} itself: with the last round's graph, that would raise",
        lambda one: is_trained_by(one.summary, one.store, one.value),
    ),
    Reason(
        "one-batch-at-a-time",
        "{place} is made anew for each batch, here or by the callers",
        lambda one: one.has_no_graph and once_a_batch(one.analyser, one.summary, one.store),
    ),
    Reason(
        "leaves-early",
        "{loop} ends after a few rounds",
        lambda one: one.has_no_graph and one.store.loop is not None and ends_early(one.store.loop),
    ),
    Reason(
        "moved-on-purpose",
        "the loop moves the members of a collection to the device, which is its purpose",
        lambda one: one.has_no_graph and is_moved_member(one.store),
    ),
    Reason(
        "number-on-a-path",
        "{value} is a number on some path, not a tensor",
        lambda one: one.has_no_graph and _is_number_on_a_path(one),
    ),
    Reason(
        "proved-free",
        "the program converts {value} to NumPy or a number in a way that raises for a tensor with a graph, so it has "
        "none",
        lambda one: not one.has_no_graph and proved_free(one.summary, one.incoming.src, one.store.tests),
    ),
    Reason(
        "becomes-array",
        "what {place} collects becomes a NumPy array later, which raises for tensors with a graph or on an accelerator",
        lambda one: becomes_array(one.summary, one.store),
    ),
    Reason(
        "no-new-graph",
        "no round of {loop} records a graph of its own for {value}: it was made before the loop",
        lambda one: not one.has_no_graph and not adds_a_graph(one.summary, one.store, one.incoming),
    ),
    Reason(
        "frozen-by-callers",
        "every known caller of {function} has frozen the models that make {value}, so nothing is recorded",
        lambda one: not one.has_no_graph and frozen_by_callers(one.analyser, one.summary, one.store),
    ),
)

#: a store of a value with a graph has low confidence if one of these applies
DOUBTED: tuple[Reason[Candidate], ...] = (
    Reason(
        "through-unresolved-call",
        "the way from the previous value of {place} to the new one leads through a call that cannot be resolved",
        lambda one: carried_loosely(one.summary, one.store),
    ),
    Reason(
        "may-raise",
        "the backward of the next round would raise if {place} still had this graph: other code may detach it",
        lambda one: would_raise(one.summary, one.store, one.value),
    ),
    Reason(
        "begun-elsewhere",
        "other code begins {place} anew, or may do so",
        lambda one: reset_elsewhere(one.analyser, one.summary, one.store),
    ),
    Reason(
        "held-already",
        "{value} comes out of a container that lives as long, so keeping it again keeps no more",
        lambda one: held_already(one.summary, one.store, one.incoming),
    ),
    Reason(
        "own-operator",
        "{place} may be an object whose class defines `+=` itself",
        lambda one: may_sum_itself(one.analyser, one.summary, one.store),
    ),
    Reason(
        "popped",
        "a method of the class returns {place} and empties it: whoever calls that may train by it",
        lambda one: is_returned_and_reset(one.analyser, one.store),
    ),
    Reason(
        "loop-ends-early",
        "{loop} ends after a few rounds",
        lambda one: (
            one.value.freed == "no"
            and one.loop is not None
            and one.loop.kind == "for"
            and one.store.loop is not None
            and ends_early(one.store.loop)
        ),
    ),
    Reason(
        "parts-of-one-step",
        "one backward() runs in the life of {place}, so the rounds of {loop} are the parts of one step",
        lambda one: of_one_step(one.summary, one.store),
    ),
    Reason(
        "loop-over-objects",
        "{loop} runs over models, agents or heads, of which there is a handful",
        lambda one: one.value.freed == "no" and one.store.loop is not None and one.store.loop.over_objects,
    ),
    Reason(
        "one-of-each-member",
        "{place} is begun anew around a loop over a handful of models, agents or heads",
        lambda one: ends_with_members(one.summary, one.store),
    ),
    Reason(
        "may-be-a-number",
        "{value} may be a number instead of a tensor",
        lambda one: (
            one.value.attached == "some"
            and one.incoming.may_be(DATA)
            and one.value.freed == "no"
            and not one.store.sure_part
        ),
    ),
    Reason(
        "code-of-a-test",
        "{function} is a test or a trial, which runs once",
        lambda one: one.store.loop is None and in_trial(one.summary.function),
    ),
    Reason(
        "old-torch",
        "the code guards against autograd in the way of torch before 0.4 (`volatile`)",
        lambda one: inert_guards.guards_in_its_time(one.summary),
    ),
    Reason(
        "no-call-comes-here",
        "no known call of {function} passes arguments with which this line runs",
        lambda one: left_out(one.analyser, one.summary, one.store.tests),
    ),
)

#: a store of a tensor without a graph has low confidence if one of these applies
DOUBTED_TENSOR: tuple[Reason[Candidate], ...] = (
    Reason(
        "data-to-train-by",
        "what {place} collects is used in a later training loop, and so wanted on the device",
        lambda one: trained_on(one.analyser, one.summary, one.store),
    ),
    Reason(
        "compared-on-device",
        "other tensors on the device are compared or multiplied with what {place} collects",
        lambda one: is_multiplied(one.analyser, one.summary, one.store),
    ),
    Reason(
        "wanted-whole",
        "what {place} collects is used as a whole on the device",
        lambda one: needed_as_one_tensor(one.analyser, one.summary, one.store),
    ),
    Reason(
        "may-be-few-parts",
        "nothing tells that {loop} goes through batches of data: it may have a handful of rounds",
        lambda one: not goes_through_data(one.summary, one.store),
    ),
)

#: reasons that are decided after the tables
BOUNDED: Reason[Candidate] = Reason(
    "may-be-bounded",
    "other code may empty {place}, or may need the graph that it keeps",
    lambda one: True,
)
MAY_BE_NEEDED: Reason[Candidate] = Reason(
    "may-be-needed",
    "nothing proves that no backward() needs the graph that {place} keeps, or that {loop} has many rounds",
    lambda one: True,
)
FEW_ROUNDS_OF_A_TEST: Reason[Candidate] = Reason(
    "rounds-of-a-test", "{function} is a test, whose loop has few rounds", lambda one: True
)
