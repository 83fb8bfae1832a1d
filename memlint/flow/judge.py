"""From what one function was seen to do to the events that rules read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

from memlint.finding import Confidence, weakest
from memlint.flow import allocation, batches, growing, inert, updates
from memlint.flow.apply import takes_activations
from memlint.flow.evaluation import evaluations, is_evaluation_name, is_trial, model_calls, unguarded_module
from memlint.flow.events import Carry, Device, Event, Fact, How, Loop, Place, Retain, Size, Step, SummedLosses, Value
from memlint.flow.frame import Frame, Store
from memlint.flow.graphs import part_of
from memlint.flow.ops import names_number, on_accelerator
from memlint.flow.periods import FEW
from memlint.flow.program import Function
from memlint.flow.state import AMBIENT, OFF, ON
from memlint.flow.stores import carried_loosely
from memlint.flow.values import CPU, DATA, OUTPUT, UNKNOWN, Path, Source, V, ordered

if TYPE_CHECKING:
    from memlint.flow.analyser import Analyser

_SIZES: tuple[Size, ...] = ("scalar", "sample", "batch", "activation", "model", "unknown", "unknown")


#: functions that build models
_BUILDERS = ("init__", "make_layer", "make_block", "make_stage", "build_", "create_")


def judge(analyser: Analyser, frame: Frame) -> Iterator[Event]:
    """The events of one function."""
    if frame.exit is None and not frame.loops and not frame.stores and not frame.runs:
        return
    yield from batches.events(analyser, frame)
    yield from allocation.events(analyser, frame)
    yield from updates.events(analyser, frame)
    verdicts = evaluations(analyser, frame)
    kept: set[Source] = set()
    events: list[Event] = []
    for store in frame.stores.values():
        judged = (
            growing.judged(analyser, frame, store, _value, _needed)
            if store.kind == "cat"
            else _judge_store(analyser, frame, store)
        )
        for event in judged:
            events.append(event)
            if isinstance(event, Retain | Carry) and not event.needed and event.value.attached in ("yes", "some"):
                kept |= frame.graphs.closure((store.incoming or store.value).src)
    yield from inert.guards(analyser, frame, list(model_calls(analyser, frame, verdicts, frozenset(kept))))
    yield from events


def _judge_store(analyser: Analyser, frame: Frame, store: Store) -> Iterator[Event]:
    if frame.function.name.lstrip("_").startswith(_BUILDERS):
        return  # what is put together there are layers
    loop = _loop_of(analyser, frame, store)
    if loop is None or not store.ended or store.cleared == FEW:
        return
    if store.local and (
        _in_module(analyser, frame, store) or (store.how != "call" and _rebuilt_each_batch(frame, store))
    ):
        return
    if not store.local and _in_module(analyser, frame, store) and not _from_last_call(analyser, frame, store):
        return
    place = Place(store.place_kind, store.place_text)
    incoming = store.incoming or store.value
    value = _value(analyser, frame, store, incoming)
    if value.attached == "unknown":
        return
    if store.kind == "carry" and store.how == "call" and store.lifted and value.freed == "yes":
        return  # its backward would raise in the second round: a program that runs resets it on a way not seen here
    if _once_a_batch(analyser, frame, store) if value.attached == "no" else not _adds_a_graph(frame, store, incoming):
        return
    needed = _needed(analyser, frame, store) and value.freed != "yes"
    certainty: Confidence = "medium" if store.guessed or store.place_kind == "foreign" else "high"
    if value.attached in ("yes", "some"):
        certainty = weakest(certainty, _unwanted(analyser, frame, store, value))
        if (
            carried_loosely(frame, store)
            or _would_raise(frame, store, value)
            or _begun_elsewhere(analyser, frame, store)
            or _held_already(frame, store, incoming)
            or _of_one_step(frame, store)
            or (value.attached == "some" and incoming.may_be(DATA) and value.freed == "no")  # a number on some path
            or (store.loop is None and _in_trial(frame.function))
        ):
            certainty = "low"
    if (
        needed
        and (store.how == "add" or (store.kind == "retain" and value.size == "scalar"))
        and value.attached in ("yes", "some")
        and store.loop is not None
    ):
        yield from _summed(frame, store, place, loop)
    retained_run = _run_of(frame, incoming)
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
        )
        return
    yield Carry(
        site=store.site,
        function=frame.function.qual,
        certainty=certainty,
        trace=store.trace,
        value=value,
        place=place,
        loop=loop,
        how=cast(How, store.how),
        needed=needed,
        reset=store.cleared,
        in_model_loop=retained_run,
    )


def _unwanted(analyser: Analyser, frame: Frame, store: Store, value: Value) -> Confidence:
    """How sure it is that nobody wants the graph that the place keeps.

    A backward that frees it, or a part of it, proves that it is done with; so does a model in eval mode, or the
    framework that runs the backward itself. Without any of these, code that neither trains nor evaluates may well
    hand the graph to somebody: a function's name is then the only hint, and not enough where there is none.
    """
    if value.freed in ("yes", "some") or store.dead:
        return "high"
    if _run_of(frame, store.incoming or store.value):
        return "high"
    if frame.hook is not None:
        return "low" if frame.hook.outputs else "high"  # evaluation engines hand over outputs made under no_grad
    if any(loops for _, loops, _ in frame.backwards):
        return "high"
    if frame.notes.blind_backward:
        return "low"  # it may be this graph that it wants
    if unguarded_module(analyser, frame) and _ambient_only(frame, (store.incoming or store.value).src):
        return "low"
    if is_evaluation_name(frame.function):
        return "medium"
    leaves = frame.escaped | frame.notes.returned
    # what never leaves a function without a backward, nobody can want
    sure = store.local and not marks_of(frame, store) & leaves and not _on_some_paths(frame, store, value)
    return "medium" if sure else "low"


def _on_some_paths(frame: Frame, store: Store, value: Value) -> bool:
    """Whether only some paths of a callee record the graph, which its arguments choose."""
    nodes = (frame.graphs.nodes.get(item) for item in frame.graphs.closure((store.incoming or store.value).src))
    return value.attached == "some" and all(node.partial for node in nodes if node is not None and node.definite)


def _would_raise(frame: Frame, store: Store, value: Value) -> bool:
    """Whether the next round's backward would raise if the state had its graph, while it is not a layer in sight that
    gives the state: code that runs tells that the model lets go of it somewhere."""
    if store.kind != "carry" or store.how != "call" or value.freed != "yes":
        return False
    nodes = (frame.graphs.nodes.get(item) for item in (store.incoming or store.value).src)
    return any(node is not None and (node.opaque or node.unknown or node.via) for node in nodes)


def _begun_elsewhere(analyser: Analyser, frame: Frame, store: Store) -> bool:
    """Whether a state of a module is begun anew by other code, which says when: at each sequence, or each epoch."""
    if store.kind != "carry" or store.how not in ("add", "update") or store.loop is not None:
        return False
    attributes = [step for step in store.place.steps if step.startswith(".")] if isinstance(store.place, Path) else []
    return bool(attributes) and analyser.facts.is_begun(attributes[-1][1:])


def _held_already(frame: Frame, store: Store, incoming: V) -> bool:
    """Whether the value was read out of a container that lives as long: keeping it twice keeps no more."""
    heap = frame.exit.heap if frame.exit is not None else {}
    return (
        store.kind == "retain"
        and store.loop is not None
        and any(
            isinstance(item, tuple)
            and item[:1] == ("elem",)
            and item[1] != store.place
            and (obj := heap.get(item[1])) is not None
            and store.loop.id not in obj.loops
            for item in incoming.src
        )
    )


def _of_one_step(frame: Frame, store: Store) -> bool:
    """Whether a backward runs once in the life of the place: the rounds of inner loops are the parts of one step."""
    if not store.local or store.loop is None or frame.function.node is None:
        return False
    outer = store.loops[: store.loops.index(store.loop.id)] if store.loop.id in store.loops else store.made
    if store.kind == "retain" and store.made != outer:
        return False
    if store.kind == "carry" and outer:
        reached = frame.graphs.closure(store.value.src)
        if any(("prev", outer[-1], mark) in reached for mark in _names_of(store)):
            return False
    return any(loops == outer for _, loops, _ in frame.backwards) and not any(
        store.loop.id in loops for _, loops, _ in frame.backwards
    )


def _in_trial(function: Function) -> bool:
    """Code of a test, which runs once."""
    around: Function | None = function
    while around is not None:
        if is_trial(around):
            return True
        around = around.around
    return False


def _adds_a_graph(frame: Frame, store: Store, incoming: V) -> bool:
    """Whether each round brings a graph of its own: a model (or a parameter) takes part inside the loop."""
    if store.loop is None:
        return True
    reached = frame.graphs.closure(incoming.src)
    if any(isinstance(item, Path) and item != store.place for item in reached) and not any(
        item in frame.graphs.nodes and frame.graphs.nodes[item].definite for item in reached
    ):
        return True
    proved = {item for evidence in frame.graphs.evidence if evidence <= incoming.src for item in evidence}
    return any(
        (node := frame.graphs.nodes.get(item)) is not None
        and (node.definite or item in proved)
        and store.loop.id in node.loops
        for item in reached
    )


def _once_a_batch(analyser: Analyser, frame: Frame, store: Store) -> bool:
    """Whether the place is made anew for each batch, here or by callers: parts of one batch are collected in it."""
    if not store.local:
        return False
    return store.inner or any(record.each_batch for _, record in analyser.facts.calls_of(frame.function))


def _loop_of(analyser: Analyser, frame: Frame, store: Store) -> Loop | None:
    """What repeats the store: a loop in sight, or a framework that calls the function again and again.

    A loop inside a hook goes through the parts of one call: what outlives the call grows with each one.
    """
    if store.loop is not None and (store.local or frame.hook is None or store.loop.loop.over == "loader"):
        return store.loop.loop
    called = _calls_of_hook(frame, store)
    return called if called is not None or store.loop is None else store.loop.loop


def _calls_of_hook(frame: Frame, store: Store) -> Loop | None:
    """Each call of the function, where a framework calls it once an iteration and the place outlives the call."""
    if store.local or not isinstance(store.place, Path):
        return None
    hook = frame.hook
    if hook is None or hook.every != "iteration":
        return None
    if store.place.root.startswith("p:") and store.place.root != f"p:{_self_name(frame.function)}":
        return None
    if not store.place.steps and store.place.root.startswith("p:"):
        return None
    return Loop(
        "calls", "unknown", "iteration", None, f"each call of {frame.function.name}", frame.site(_at(frame.function))
    )


def _self_name(function: Function) -> str:
    return function.params[0].name if function.params else "self"


def _at(function: Function) -> int:
    return function.node.at if function.node is not None else 0


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
    return not trains and store.loop is not None and store.loop.loop.over != "loader"


def _from_last_call(analyser: Analyser, frame: Frame, store: Store) -> bool:
    """Whether a forward builds the place on what its last call left there, and nobody sets it between two calls."""
    if store.kind != "carry":
        return True
    place = store.place
    if not isinstance(place, Path) or place not in frame.graphs.closure(store.value.src):
        return False
    if place in frame.notes.reset_by_parameter:
        return False
    if store.how != "call":
        return True
    attributes = [step for step in place.steps if step.startswith(".")]
    return len(attributes) == 1 and not analyser.facts.is_reset(frame.function, attributes[0][1:])


def _rebuilt_each_batch(frame: Frame, store: Store) -> bool:
    """A place that is made anew for each batch holds the parts of one batch, however its inner loop runs."""
    if store.loop is None or store.loop.loop.over == "loader" or store.loop.id not in store.loops:
        return False
    inner = store.loop.id
    trains = any(inner in loops for _, loops, _ in frame.backwards)
    reached = frame.graphs.closure(store.value.src)
    for item in store.loops[: store.loops.index(inner)]:
        loop = frame.kinds_of_loops.get(item)
        if loop is None or loop.kind != "for" or loop.over not in (("loader",) if trains else ("loader", "unknown")):
            continue
        if item in store.made or (
            store.kind == "carry" and not any(("prev", item, mark) in reached for mark in _names_of(store))
        ):
            return True
    return False


def _names_of(store: Store) -> tuple[Source, ...]:
    """How the marks of earlier rounds name the place."""
    return tuple(mark[2] for mark in marks_of(None, store) if isinstance(mark, tuple) and mark and mark[0] == "prev")


def _in_forward(analyser: Analyser, frame: Frame) -> bool:
    """Loops in a module's forward run over layers, heads or time steps; what it keeps locally dies with it."""
    function = frame.function
    while function.enclosing is not None:
        function = function.enclosing
    return (
        function.cls is not None
        and function.name in ("forward", "__call__")
        and analyser.program.is_module(function.cls)
    )


def _value(analyser: Analyser, frame: Frame, store: Store, value: V) -> Value:
    own = {store.place} if isinstance(store.place, Path) else set()
    layered = isinstance(store.place, Path) and takes_activations(analyser, frame)
    sources = frozenset(source for source in value.src if source not in own)
    grad_off = not analyser_grad(analyser, frame, store.grad) & ON

    def symbol(path: Path) -> bool | None:
        if path in own:
            return False
        return (
            True
            if layered
            and path.root.startswith("p:")
            and path.root != f"p:{_self_name(frame.function)}"
            and not any(step.startswith(".") for step in path.steps)  # (an option of a configuration is no activation)
            else None
        )

    attached, by_backward = frame.graphs.attached(sources, symbol)
    certainty = _certainty(frame, sources)
    if attached == "yes" and _ambient_only(frame, sources) and not analyser_grad(analyser, frame, AMBIENT) & ON:
        attached = "no"
    if attached == "yes" and grad_off and store.kind == "carry":
        attached = "no"
    if attached == "unknown" and store.kind == "carry" and store.how == "call" and _state_of_model(frame, sources):
        attached, certainty = "yes", "medium"
    fact: Fact = "some" if attached == "yes" and value.bare else attached
    if attached == "no" and value.kinds & UNKNOWN:
        fact = "unknown"
    freed: Fact = store.freed or "no"
    return Value(
        attached=fact,
        freed=freed,
        device=_device(value),
        size=_size(store, value, fact),
        text=store.text,
        certainty=certainty,
        origin=_origin(frame, sources),
        by_backward=by_backward,
    )


def _state_of_model(frame: Frame, sources: frozenset[Source]) -> bool:
    """A part of a model's output that goes back into the model is its recurrent state, and has the model's graph."""
    for source in sources:
        node = frame.graphs.nodes.get(source)
        if (
            node is not None
            and node.unknown
            and any(
                (parent := frame.graphs.nodes.get(item)) is not None
                and parent.definite
                and parent.model
                and part_of(source, item)
                for item in node.parents
            )
        ):
            return True
    return False


def analyser_grad(analyser: Analyser, frame: Frame, grad: int) -> int:
    """A grad mode with the caller's filled in."""
    if not grad & AMBIENT:
        return grad
    if frame.hook is not None and frame.hook.grad == "ambient":
        return grad & (ON | OFF) | ON
    return grad & (ON | OFF) | analyser.facts.grad_of(frame.function)


def _ambient_only(frame: Frame, sources: frozenset[Source]) -> bool:
    nodes = [
        node
        for item in frame.graphs.closure(sources)
        if (node := frame.graphs.nodes.get(item)) is not None and node.definite
    ]
    return bool(nodes) and all(node.ambient for node in nodes)


def _device(value: V) -> Device:
    if on_accelerator(value.device):
        return "accelerator"
    return "cpu" if value.device == CPU else "unknown"


def _size(store: Store, value: V, attached: Fact) -> Size:
    """A model's output has the size of a batch, unless a name says that it is a number; with a graph its size
    is what the graph keeps, which is not known."""
    if value.size != OUTPUT or attached != "no":
        return _SIZES[value.size]
    return "unknown" if names_number(store.text) or names_number(store.place_text) else "batch"


def _certainty(frame: Frame, sources: frozenset[Source]) -> Confidence:
    """A graph that an unresolved loss is taken to pass on is less certain, unless a backward proves it."""
    if any(evidence <= sources for evidence in frame.graphs.evidence if evidence):
        return "high"
    guessed = any((node := frame.graphs.nodes.get(item)) is not None and node.guess for item in sources)
    return "medium" if guessed else "high"


def _origin(frame: Frame, sources: frozenset[Source]) -> tuple[Step, ...]:
    """Where the graph was made: the model call, through callees."""
    best = None
    for item in sorted(frame.graphs.closure(sources), key=repr):
        node = frame.graphs.nodes.get(item)
        if node is not None and node.definite and (best is None or (node.model and not best.model)):
            best = node
    if best is None:
        return ()
    steps = [Step(frame.site(best.at), f"`{best.what}` records the graph")]
    steps += [Step(site, f"which runs `{what}`") for site, what in best.via]
    return tuple(steps)


def _run_of(frame: Frame, value: V) -> bool:
    """Whether the graph comes from an evaluation that lacks no_grad."""
    flagged = frame.notes.evaluations
    return any(item in flagged for item in frame.graphs.closure(value.src))


# -------------------------------------------------------------------------------------- later use


def marks_of(frame: Frame | None, store: Store) -> set[Source]:
    """What later use of the place carries."""
    place = store.place
    if isinstance(place, Path):
        own = {place, place.then("[]")} if store.kind == "retain" else {place}
        return own | {("prev", loop, item) for loop in store.loops for item in tuple(own)}
    if store.kind == "retain":
        return {("elem", place), *(("elem", key) for key in store.objs)}
    kind, name = place
    mark = name if kind == "var" else (kind, name.lstrip(".").strip("[]"))
    return {("prev", loop, mark) for loop in store.loops}


def _needed(analyser: Analyser, frame: Frame, store: Store) -> bool:
    """Whether the graph that the place keeps is wanted: it reaches a backward, or leaves to where nobody can follow."""
    if frame.notes.gradients and store.freed != "yes":
        return True
    marks = marks_of(frame, store)
    inside = store.loop.id if store.loop is not None else None
    for reached, loops, _ in frame.backwards:
        # a backward of the same round frees what it needs; one on some rounds only (accumulation) needs the rest
        if marks & reached and (inside not in loops or store.freed == "some"):
            return True
    if store.freed in ("yes", "some") or store.dead or _run_of(frame, store.incoming or store.value):
        return False
    if isinstance(store.place, Path):
        return _needed_elsewhere(analyser, frame, store) or _used_in_needed(analyser, frame, store)
    if marks & frame.escaped:
        return True
    if marks & frame.notes.returned:
        return not _dropped_by_callers(analyser, frame)
    return False


def _dropped_by_callers(analyser: Analyser, frame: Frame) -> bool:
    """Whether every known caller uses the result without its graph."""
    if frame.notes.evaluations:
        return True
    records = analyser.facts.calls_of(frame.function)
    if not records:
        return False
    for caller, record in records:
        sources = record.result.src
        for key in ordered(record.result.objs):
            obj = caller.exit.heap.get(key) if caller.exit is not None else None
            if obj is not None:
                for value in (*obj.fields.values(), obj.elem):
                    sources |= value.src
        if caller.notes.blind_backward or sources & (caller.escaped | caller.notes.returned):
            return False
        if any(sources & reached for reached, _, _ in caller.backwards):
            return False
    return True


def _needed_elsewhere(analyser: Analyser, frame: Frame, store: Store) -> bool:
    """Whether any function of the project sends this attribute or global into a backward."""
    place = store.place
    assert isinstance(place, Path)
    marks = marks_of(frame, store)
    if marks & frame.escaped and store.kind == "retain":
        return True
    name = next((step for step in reversed(place.steps) if step.startswith(".")), None)
    if name is not None and name in analyser.facts.attributes_in_backward():
        return True
    return any(marks & reached for other in analyser.frames() for reached, _, _ in other.backwards)


def _used_in_needed(analyser: Analyser, frame: Frame, store: Store) -> bool:
    """Whether what is computed from a carried state is kept for a backward elsewhere (a rollout)."""
    if store.kind != "carry":
        return False
    incoming = (store.incoming or store.value).src
    marks = marks_of(frame, store) | {item for item in incoming if item in frame.graphs.nodes}
    return any(
        other.kind == "retain"
        and isinstance(other.place, Path)
        and marks & frame.graphs.closure(other.value.src)
        and _needed_elsewhere(analyser, frame, other)
        for other in frame.stores.values()
    )


def _summed(frame: Frame, store: Store, place: Place, loop: Loop) -> Iterator[SummedLosses]:
    """One backward after a loop that summed the losses of its batches."""
    assert store.loop is not None
    if loop.kind != "for" or loop.over in ("modules", "epochs"):
        return
    if any(
        other.kind == "carry" and other.how == "call" and other.loop is store.loop for other in frame.stores.values()
    ):
        return  # time steps of a recurrence, not batches of their own
    reached_nodes = (frame.graphs.nodes.get(item) for item in frame.graphs.closure((store.incoming or store.value).src))
    if not any(node is not None and node.model and store.loop.id in node.loops for node in reached_nodes):
        return
    marks = marks_of(frame, store)
    for reached, loops, site in frame.backwards:
        if marks & reached and store.loop.id not in loops:
            yield SummedLosses(
                site=store.site, function=frame.function.qual, certainty="medium", place=place, loop=loop, backward=site
            )
            return
