"""From what one function was seen to do to the events that rules read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

import msgspec

from memlint.finding import Confidence, weakest
from memlint.flow import batches, growing, inert, updates
from memlint.flow.as_called import freed_as_called, frozen_as_called, left_out
from memlint.flow.bounds import (
    begun_by_inner_loop,
    ends_with_members,
    holds_layers,
    may_be_bounded,
    once_in_a_loop,
    spent_and_begun,
)
from memlint.flow.carried_on import carried_on, is_carried_alone, state_of
from memlint.flow.carry import PART
from memlint.flow.collected import becomes_array, compared_with, proved_free, trained_on
from memlint.flow.described import lacks_guard, of_evaluation, self_name, value_of
from memlint.flow.distinct import in_one_round
from memlint.flow.doubts import (
    adds_a_graph,
    begun_elsewhere,
    counts,
    from_last_call,
    goes_through_data,
    held_already,
    in_trial,
    is_array,
    is_moved_member,
    is_trained_by,
    may_sum_itself,
    of_one_step,
    once_a_batch,
    rebuilt_each_batch,
    unwanted,
    would_raise,
)
from memlint.flow.evaluation import Keeper, evaluations, model_calls
from memlint.flow.events import Carry, Event, How, Loop, Place, Retain, Step, SummedLosses
from memlint.flow.first_round import begun_each_round
from memlint.flow.first_step import begun_at_first_step
from memlint.flow.frame import Frame, Store
from memlint.flow.judged_runs import of_layers
from memlint.flow.later import marks_of, wanted_later
from memlint.flow.made_places import MADE
from memlint.flow.mends.blocks import with_places
from memlint.flow.mends.cuts import cut_of
from memlint.flow.periods import FEW, ends_early, ends_soon
from memlint.flow.popped import is_popped
from memlint.flow.practices import events as practice_events
from memlint.flow.repeats import each_call, is_training_step
from memlint.flow.spent import is_test
from memlint.flow.stores import carried_loosely
from memlint.flow.values import DATA, Path, Source
from memlint.flow.wanted_whole import wanted_whole

if TYPE_CHECKING:
    from memlint.flow.analyser import Analyser


#: functions that build models, and those that may build an index or a table of what a model says of data just as well
_BUILDERS = ("init__", "make_layer", "make_block", "make_stage")
_MAY_BUILD = ("build_", "create_")


#: the rules on what grows by its graphs, by how it does
_CODES = {"add": "MEM101", "cat": "MEM302"}


def judge(analyser: Analyser, frame: Frame) -> Iterator[Event]:
    """The events of one function."""
    yield from practice_events(analyser, frame)
    if frame.exit is None and not frame.loops and not frame.stores and not frame.runs:
        return
    yield from batches.events(analyser, frame)
    yield from updates.events(analyser, frame)
    verdicts = evaluations(analyser, frame)
    kept: dict[Source, Keeper] = {}
    events: list[Event] = []
    for store in frame.stores.values():
        judged = growing.judged(analyser, frame, store) if store.kind == "cat" else _judge_store(analyser, frame, store)
        for event in judged:
            events.append(event)
            if isinstance(event, Retain | Carry) and _keeps(event):
                for source in frame.graphs.closure((store.incoming or store.value).src):
                    known = kept.get(source)
                    if known is None or (event.loop.over_data and not known.rounds.over_data):
                        kept[source] = Keeper(event.place.text, event.loop, _lost_to(event), _kept_at(event))
    calls = list(model_calls(analyser, frame, verdicts, kept))
    yield from with_places(analyser, frame, inert.guards(analyser, frame, calls))
    yield from events


def _keeps(event: Retain | Carry) -> bool:
    """Whether a rule reports that the graph is kept, for all to see."""
    shown = "low" not in (event.certainty, event.value.certainty)
    return shown and not event.needed and event.value.attached in ("yes", "some")


def _kept_at(event: Retain | Carry) -> Step:
    """Where a graph is kept, with the rule that says so there."""
    code = "MEM102" if isinstance(event, Retain) else _CODES.get(event.how, "MEM103")
    return Step(event.site, f"`{event.place.text}` keeps this graph ({code} reports the same memory)")


def _lost_to(event: Retain | Carry) -> Confidence:
    """How sure it is that what is kept makes the graph useless: no backward has freed it, and none comes."""
    if event.value.freed != "no" or event.value.attached != "yes" or not event.loop.over_data or event.reset:
        return "low"
    return weakest(event.certainty, event.value.certainty)


def _judge_store(analyser: Analyser, frame: Frame, store: Store) -> Iterator[Event]:
    if _builds_layers(frame, store):
        return
    loop = _loop_of(analyser, frame, store)
    if loop is None or not store.ended or store.cleared == FEW:
        return
    if store.local and _in_module(analyser, frame, store):
        return
    if store.local and store.how != "call" and rebuilt_each_batch(frame, store):
        yield from _summed_anew(analyser, frame, store)
        return
    if not store.local and _in_module(analyser, frame, store) and not from_last_call(analyser, frame, store):
        return
    if _handed_down(frame, store) and _in_forward(analyser, frame):
        return
    place = Place(store.place_kind, store.place_text)
    incoming = store.incoming or store.value
    if store.kind == "carry" and store.key[-1] == PART and not store.spent and not of_evaluation(frame, incoming):
        return  # it may be what somebody trains by, whoever fills it
    value = value_of(analyser, frame, store, incoming)
    if value.freed == "some" and freed_as_called(analyser, frame, store):
        value = msgspec.structs.replace(value, freed="yes")
    if value.attached == "unknown" or holds_layers(frame, store) or begun_by_inner_loop(store):
        return
    if _in_few_rounds(store):
        return
    if once_in_a_loop(store) or in_one_round(frame, store) or begun_each_round(frame, store) or spent_and_begun(store):
        return
    if begun_at_first_step(analyser, frame, store):
        return
    if value.attached != "no" and store.evaluates and frame.hook is not None and frame.hook.grad == "ambient":
        return  # a forward in eval mode: whether it records is told where the model is called
    if store.kind == "carry" and store.how == "call" and store.lifted and value.freed == "yes":
        return  # its backward would raise in the second round: a program that runs resets it on a way not seen here
    if is_trained_by(frame, store, value):
        return
    if value.attached == "no":
        if once_a_batch(analyser, frame, store) or (store.loop is not None and ends_early(store.loop)):
            return
        if is_moved_member(store):
            return
        record = bool(store.parts) or store.text.startswith(("(", "[", "{"))
        if incoming.may_be(DATA) and not incoming.objs and not record:
            return  # a number on some path
    elif (
        is_array(frame, store)
        or proved_free(frame, incoming.src, store.tests)
        or becomes_array(frame, store)
        or not adds_a_graph(frame, store, incoming)
        or frozen_as_called(analyser, frame, store)
    ):
        return
    # (see `is_carried_alone`)
    alone = store.loop is None and loop.kind == "calls" and frame.hook is None and not is_training_step(analyser, frame)
    needed = not alone and wanted_later(analyser, frame, store) and value.freed != "yes"
    certainty: Confidence = "medium" if store.guessed or store.place_kind == "foreign" else "high"
    if value.attached in ("yes", "some"):
        certainty = weakest(certainty, "medium" if alone else unwanted(analyser, frame, store, value))
        if (
            carried_loosely(frame, store)
            or would_raise(frame, store, value)
            or begun_elsewhere(analyser, frame, store)
            or held_already(frame, store, incoming)
            or may_sum_itself(analyser, frame, store)
            or is_popped(analyser, store)
            or (certainty != "high" and counts(store))
            or (value.freed == "no" and loop.kind == "for" and store.loop is not None and ends_early(store.loop))
            or of_one_step(frame, store)
            or (value.freed == "no" and store.loop is not None and store.loop.over_objects)
            or ends_with_members(frame, store)
            or (value.attached == "some" and incoming.may_be(DATA) and value.freed == "no" and not store.sure_part)
            or (store.loop is None and in_trial(frame.function))
            or inert.guards_in_its_time(frame)
            or left_out(analyser, frame, store.tests)
        ):
            certainty = "low"
    elif (
        trained_on(analyser, frame, store)
        or compared_with(analyser, frame, store)
        or wanted_whole(analyser, frame, store)
        or not goes_through_data(frame, store)
    ):
        certainty = "low"
    # a state of a module that an evaluation carries on, whatever those do that train
    name = state_of(frame, store) if certainty != "low" and value.attached in ("yes", "some") else ""
    seen = carried_on(analyser, frame, name) if name else None
    if certainty != "low" and seen is None and not alone and may_be_bounded(analyser, frame, store, value):
        certainty = "low"
    few = store.loop is None or store.loop.loop.over not in ("loader", "epochs")
    if few and is_test(frame.function, by_name=frame.hook is None):
        certainty = "low"  # the few rounds of a test (``test_step`` of a framework is none)
    if (
        needed
        and (store.how == "add" or (store.kind == "retain" and value.size == "scalar"))
        and value.attached in ("yes", "some")
        and store.loop is not None
    ):
        yield from _summed(frame, store, place, loop)
    retained_run = lacks_guard(frame, incoming)
    shown = not needed and "low" not in (certainty, value.certainty)
    cut = cut_of(analyser, frame, store) if shown else None
    if store.kind == "retain":
        yield Retain(
            site=store.site,
            function=frame.function.qual,
            certainty=certainty,
            trace=store.trace,
            value=value,
            place=place,
            loop=loop,
            how=store.how,
            needed=needed,
            reset=store.cleared,
            in_model_loop=retained_run,
            cut=cut,
        )
        return
    yield Carry(
        site=store.site,
        function=frame.function.qual,
        certainty=certainty,
        trace=store.trace if seen is None else (*store.trace, seen),
        value=value,
        place=place,
        loop=loop,
        how=cast(How, store.how),
        needed=needed,
        reset=store.cleared,
        in_model_loop=retained_run or seen is not None,
        cut=cut,
    )


def _builds_layers(frame: Frame, store: Store) -> bool:
    """Whether what a function puts together are layers, by its name: a loop through data is about none."""
    name = frame.function.name.lstrip("_")
    if not name.startswith(_MAY_BUILD):
        return name.startswith(_BUILDERS)
    around = (frame.notes.rounds.get(item) for item in store.loops)
    return not any(loop is not None and (loop.loop.over_data or loop.loop.batches) for loop in around)


def _in_few_rounds(store: Store) -> bool:
    """Whether the place lives no longer than a loop of a few rounds, by a literal."""
    if not store.local or store.loop is None or store.loop.id not in store.loops:
        return False
    around = store.loops[: store.loops.index(store.loop.id)]
    return ends_soon(store.loop) and store.made[: len(around)] == around


def _loop_of(analyser: Analyser, frame: Frame, store: Store) -> Loop | None:
    """What repeats the store: a loop in sight, or a framework that calls the function again and again.

    A loop inside a hook goes through the parts of one call: what outlives the call grows with each one.
    """
    seen = None
    if store.loop is not None:
        seen = frame.seen(store.loop)
        if store.local or frame.hook is None or seen.over == "loader":
            return seen
    if store.how == "key":
        return None  # each call counts its keys anew, and overwrites what the last one left there
    if seen is None and state_of(frame, store) and is_carried_alone(analyser, frame, store):
        return each_call(frame.function)  # (what it reads, its last call has left)
    return _calls_from_elsewhere(analyser, frame, store) or seen


def _calls_from_elsewhere(analyser: Analyser, frame: Frame, store: Store) -> Loop | None:
    """Each call of the function, where a framework calls it once an iteration, or whoever trains does, and the place
    outlives the call."""
    if store.local or not isinstance(store.place, Path):
        return None
    if frame.hook.every != "iteration" if frame.hook is not None else not is_training_step(analyser, frame):
        return None
    if store.place.root.startswith("p:") and store.place.root != f"p:{self_name(frame.function)}":
        return None
    if not store.place.steps and store.place.root.startswith("p:"):
        return None
    if store.place.root.startswith(MADE):
        return None  # the call makes it
    if store.place.root.startswith("c:") and frame.function.owner(store.place.root[2:]) is None:
        return None  # a variable of whoever handed a function down: it goes with that call
    return each_call(frame.function)


def _in_module(analyser: Analyser, frame: Frame, store: Store) -> bool:
    """Helpers of a forward are like it: their loops run over layers and steps, unless they train or see batches."""
    if _in_forward(analyser, frame):
        return True
    function = frame.function
    if function.cls is None or not analyser.program.is_module(function.cls):
        return False
    trains = bool(frame.backwards) or bool(frame.notes.evaluations) or frame.hook is not None
    if store.how == "call" and not any(
        (node := frame.graphs.nodes.get(item)) is not None and (node.definite or node.unknown or node.guess)
        for item in frame.notes.returned
    ):
        return False  # it gives away numbers only (sampling, decoding): nobody outside can want the graph
    loop = store.loop.loop if store.loop is not None else None
    return not trains and loop is not None and loop.over != "loader" and not loop.names_data


def _in_forward(analyser: Analyser, frame: Frame) -> bool:
    """Loops in a module's forward run over layers, heads or time steps; what it keeps locally dies with it."""
    return of_layers(analyser, frame.function)


def _handed_down(frame: Frame, store: Store) -> bool:
    """Whether the place is an argument, which is the caller's to judge: a list that a forward passes to its parts."""
    place = store.place
    own = f"p:{self_name(frame.function)}" if frame.function.takes_self else ""
    return isinstance(place, Path) and place.root.startswith("p:") and place.root != own


# -------------------------------------------------------------------------------------- later use


def _summed_anew(analyser: Analyser, frame: Frame, store: Store) -> Iterator[SummedLosses]:
    """The losses of the parts of one batch (tasks, micro-batches), where each batch begins a sum of its own."""
    value = value_of(analyser, frame, store, store.incoming or store.value)
    if store.how == "add" and store.loop is not None and value.attached in ("yes", "some") and value.freed == "no":
        yield from _summed(frame, store, Place(store.place_kind, store.place_text), store.loop.loop)


def _summed(frame: Frame, store: Store, place: Place, loop: Loop) -> Iterator[SummedLosses]:
    """One backward after a loop that summed the losses of its batches."""
    assert store.loop is not None
    if loop.kind != "for" or loop.over in ("modules", "epochs"):
        return
    if any(
        other.kind == "carry" and other.how == "call" and other.loop is store.loop for other in frame.stores.values()
    ):
        return  # time steps of a recurrence, not batches of their own
    reached = frame.graphs.closure((store.incoming or store.value).src)
    nodes = [node for item in reached if (node := frame.graphs.nodes.get(item)) is not None]
    if not any(node.model and store.loop.id in node.loops for node in nodes):
        return
    if any(node.definite and not node.leaf and store.loop.id not in node.loops for node in nodes):
        return  # all of them go through one forward before the loop: the first backward would free what the rest needs
    own = f"p:{self_name(frame.function)}" if frame.function.takes_self else None
    if loop.over == "range" and any(isinstance(item, Path) and item.root == own for item in reached):
        return  # what another method has left in an attribute may come with that method's graph
    marks = marks_of(frame, store)
    for trained, loops, site, _ in frame.backwards:
        if marks & trained and store.loop.id not in loops:
            yield SummedLosses(
                site=store.site, function=frame.function.qual, certainty="medium", place=place, loop=loop, backward=site
            )
            return
