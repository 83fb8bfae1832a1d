"""The fixpoint of a loop: its body is interpreted until the state at its head is stable."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec

from memlint.analysis.domain.events import Loop
from memlint.analysis.domain.periods import ends_early
from memlint.analysis.domain.recorded_modes import keep_modes, mode_keys
from memlint.analysis.domain.state import Obj, State, join_states
from memlint.analysis.domain.summary.effects import LoopState
from memlint.analysis.domain.summary.function_state import FunctionState
from memlint.analysis.domain.values import (
    CALLABLE,
    CONTAINER,
    DATA,
    LOADER,
    MODULE,
    NONE,
    OPTIMIZER,
    TENSORS,
    UNKNOWN,
    Path,
    Source,
    V,
)
from memlint.analysis.syntax.bindings import assigned_names, names_bound_by
from memlint.analysis.syntax.expression_text import text
from memlint.analysis.syntax.syntax import calls
from memlint.analysis.transfer.assignment import assign
from memlint.analysis.transfer.heap import element
from memlint.analysis.transfer.library.feeding import (
    assume_loader,
    cuts_batches,
    feeds_by_callee,
    feeds_device,
    gives_arguments,
    gives_loaders,
)
from memlint.analysis.transfer.loops import MAX_PASSES, describe, run_generators_in
from memlint.analysis.transfer.modules.modes import note_freezing_loop
from memlint.analysis.transfer.stores.first_round import begun_anew
from memlint.analysis.transfer.stores.stores import end_iteration
from memlint.ir import nodes as ir


def for_loop(fn: FunctionState, state: State, statement: ir.For) -> State | None:
    """The state after a for loop; None where no path reaches it."""
    targets = names_bound_by(statement)
    feeds = (
        (feeds_device(statement.target, statement.body) or feeds_by_callee(fn, state, statement.target, statement.body))
        and not gives_loaders(targets, statement.body)
        and not gives_arguments(statement.iter, statement.target, statement.body)
    )
    assumed = feeds and assume_loader(fn, state, statement.iter, statement.target)
    before = len(fn.backwards)
    source = fn.interpreter.evaluate(fn, state, statement.iter)
    note_freezing_loop(fn, state, statement)
    shown = f"for {text(statement.target, 30)} in {text(statement.iter, 40)}"
    loop = describe(fn, state, statement.at, source, statement.iter, statement.target, shown)
    run_generators_in(fn, loop, before)
    _prepare(fn, loop, statement)
    if feeds and loop.loop.over in ("unknown", "range"):
        loop.loop = msgspec.structs.replace(loop.loop, over="loader")
        assumed = True
    batches = cuts_batches(statement.iter, statement.target, statement.body)
    loop.loop = msgspec.structs.replace(loop.loop, assumed=assumed, batches=batches)

    def enter(inner: State) -> State | None:
        value = element(fn, inner, source)
        assign(fn, inner, statement.target, value, None)
        for name in loop.targets & inner.env.keys():
            loop.items |= inner.env[name].objs.union(mode_keys(inner.env[name], None))
        return inner

    # a loop that counts is taken to have a round, so that its variables are rebound in each round of the loops around
    # it, and one over layers to have a layer
    members = frozenset(path.then("[]") for path in source.syms)
    end = _loop(fn, state, loop, statement.body, enter, maybe_zero=not loop.counts, members=members)
    end = fn.interpreter.block(fn, end, statement.orelse)
    for one in loop.breaks:
        end = join_states(end, one)
    return end


def while_loop(fn: FunctionState, state: State, statement: ir.While) -> State | None:
    """The state after a while loop; None where no path reaches it."""
    endless = isinstance(statement.test, ir.Const) and bool(statement.test.value)
    shown = f"while {text(statement.test, 40)}"
    feeds = feeds_device(None, statement.body) or feeds_by_callee(fn, state, None, statement.body)
    over: Literal["loader", "unknown"] = "loader" if feeds else "unknown"
    loop = LoopState(("loop", statement.at), Loop("while", over, "iteration", None, shown, fn.site(statement.at)), True)
    _prepare(fn, loop, statement)
    counted = endless and ends_early(loop)
    loop.loop = msgspec.structs.replace(loop.loop, assumed=over == "loader", counted=counted)

    def enter(inner: State) -> State | None:
        fn.interpreter.evaluate(fn, inner, statement.test)
        return inner

    end = _loop(fn, state, loop, statement.body, enter, maybe_zero=not endless)
    if endless:
        if not loop.breaks:
            fn.stays = join_states(fn.stays, end)
        end = None
    end = fn.interpreter.block(fn, end, statement.orelse)
    for one in loop.breaks:
        end = join_states(end, one)
    return end


def _prepare(fn: FunctionState, loop: LoopState, statement: ir.For | ir.While) -> None:
    """Record what the loop's body binds, and what it assigns before it reads it."""
    names, _ = assigned_names(statement.body)
    loop.bound = names
    loop.anew = begun_anew(fn.function.body, statement) - {param.name for param in fn.function.params}
    loop.body = statement.body or (ir.Jump(0, "pass"),)
    loop.over_objects = loop.over_objects or _calls_members(statement.body, loop.counters)


def _calls_members(body: tuple[ir.Stmt, ...], counters: frozenset[str]) -> bool:
    """Whether the rounds index models to call, so that there are few: ``for i in range(n): out = nets[i](x)``."""
    indices = (call.func.index for call in calls(body) if isinstance(call.func, ir.Subscript))
    return any(isinstance(index, ir.Name) and index.id in counters for index in indices)


def _loop(
    fn: FunctionState,
    state: State,
    loop: LoopState,
    body: tuple[ir.Stmt, ...],
    enter: Callable[[State], State | None],
    *,
    maybe_zero: bool,
    members: frozenset[Path] = frozenset(),
) -> State | None:
    """Interpret a loop's body until the state at its head is stable. The result is the state after the loop without
    its breaks; None where no path reaches it. ``members``: the places of what the loop goes through."""
    head: State = state
    end: State | None = None
    if loop.counts:
        fn.notes.rounds[loop.id] = loop
    outer_pending = state.pending
    begin = fn.graphs.clock
    for _ in range(MAX_PASSES):
        fn.passes += 1
        inner = _round_begun(fn.fork(head), loop, outer_pending)
        loop.breaks, loop.continues = [], []
        fn.loops.append(loop)
        started = enter(inner)
        end = fn.interpreter.block(fn, started, body)
        # the paths are judged separately: one that skips the round neither stores nor frees
        goes_on = [one for one in (end, *loop.continues) if one is not None]
        for one in goes_on:
            end_iteration(fn, one, loop)
        for one in loop.breaks:  # a store on a breaking path alone runs once, so that it does not grow
            end_iteration(fn, one, loop, frozenset().union(*(other.pending for other in goes_on)))
        for one in loop.continues:
            end = join_states(end, one)
        fn.loops.pop()
        again = join_states(head, end)
        assert again is not None
        if end is not None:
            # a graph that each round builds and frees is freed; it does not exist before the first round
            again.freed_must |= fn.graphs.made_between(end.freed_must, begin, fn.graphs.clock)
        if again.same(head):
            break
        head = again
        if not fn.spend(0) or fn.passes > fn.MAX_PASSES:
            fn.cut_short = True
            break
    if end is None:
        return head if maybe_zero else None
    # without a round no member is replaced
    after = join_states(head, end) if maybe_zero and not loop.replaces and loop.loop.over != "modules" else end
    if after is not None:
        keep_modes(end, after, loop.items)  # and none is frozen or put into a mode
        for place, value in end.sym.items() if members else ():
            if any(place.is_in(one) for one in members):
                after.sym[place] = value  # and none keeps what each round replaces
    return after


def _round_begun(inner: State, loop: LoopState, pending: frozenset[Source]) -> State:
    """The state at the beginning of an iteration, from the state at the loop's head: values of names that the body
    binds are marked as the previous iteration's. ``pending``: the stores that wait for the end of an outer
    iteration."""
    inner.fresh = frozenset(key for key in inner.fresh if loop.id not in _loops_of(inner, key))
    inner.pending = pending
    inner.met = {}  # a test that was evaluated before the loop may have another value in the next round
    for name in loop.bound:
        value = inner.env.get(name)
        if value is not None and name in loop.anew and not value.objs:
            del inner.env[name]  # a container is kept until it is rebound, so that its release is recorded
            continue
        if value is not None and value.objs:
            _mark_members(inner, value, ("prev", loop.id, name))
        if value is not None and not value.is_only(MODULE | OPTIMIZER | LOADER | CALLABLE | CONTAINER | NONE):
            inner.env[name] = value.marked(("prev", loop.id, name))
    mark_previous(inner, loop.id)
    return inner


def _mark_members(state: State, value: V, mark: Source) -> None:
    """Mark the members of a tuple, list or dict (a state of several tensors) as those from the beginning of the
    round."""
    for key, obj in state.objects(value):
        if obj.kind not in ("tuple", "list", "dict"):
            continue
        fields = {
            name: item.marked(mark) if item.kinds & (TENSORS | UNKNOWN | DATA) else item
            for name, item in obj.fields.items()
        }
        elem = obj.elem.marked(mark) if obj.elem.kinds & (TENSORS | UNKNOWN) else obj.elem
        state.heap[key] = Obj(obj.kind, elem, fields, obj.loops, obj.bounded, obj.cls, obj.text)


def mark_previous(state: State, loop: Source) -> None:
    """Mark what attributes and members hold as the previous iteration's. A value that has the mark stays the same
    object, so that comparing states is cheap."""
    for path, value in state.sym.items():
        if value.kinds & (TENSORS | UNKNOWN | DATA):
            state.sym[path] = value.marked(("prev", loop, path))
    for key, obj in state.heap.items():
        if obj.elem.kinds & (TENSORS | UNKNOWN) and obj.elem.src and ("prev", loop, (key, "")) not in obj.elem.src:
            obj = obj.with_elem(obj.elem.marked(("prev", loop, (key, ""))))
            state.heap[key] = obj
        elif obj.kind == "list" and obj.elem.is_only(DATA) and obj.elem.kinds:
            obj = obj.with_elem(obj.elem.marked(("prev", loop, (key, ""))))  # ``sums = [0] * n``
            state.heap[key] = obj
        if obj.kind in ("instance", "dict", "list") and obj.fields:
            one = obj.kind == "list"  # the index of a list's member is seldom a constant, so all members share a mark
            marked = {
                name: value.marked(mark)
                for name, value in obj.fields.items()
                if value.kinds & (TENSORS | UNKNOWN | DATA)
                and (mark := ("prev", loop, (key, "" if one else name))) not in value.src
            }
            if marked:
                fields = {**obj.fields, **marked}
                state.heap[key] = Obj(obj.kind, obj.elem, fields, obj.loops, obj.bounded, obj.cls, obj.text)


def _loops_of(state: State, key: Source) -> tuple[Source, ...]:
    obj = state.heap.get(key)
    return obj.loops if isinstance(obj, Obj) else ()
