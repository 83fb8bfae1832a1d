"""Calls of the project's functions and classes, by their summaries."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from memlint.analysis.calls.application import apply
from memlint.analysis.domain.branches import join_branches
from memlint.analysis.domain.state import Obj, State
from memlint.analysis.domain.summary.effects import CallRecord
from memlint.analysis.domain.summary.function_state import FunctionState
from memlint.analysis.domain.values import (
    CONTAINER,
    DATA,
    INSTANCE,
    MODULE,
    NONE,
    NONE_VALUE,
    NOTHING,
    OPTIMIZER,
    SCALAR,
    UNKNOWN_VALUE,
    Args,
    Ref,
    Source,
    V,
    Words,
    join,
)
from memlint.analysis.index.program import Class, Function
from memlint.analysis.syntax.syntax import last_name
from memlint.analysis.transfer import user_containers
from memlint.analysis.transfer.heap import make
from memlint.analysis.transfer.modules.flags import case_split, training
from memlint.analysis.transfer.modules.optimizer_parameters import note_escaped_modules, note_optimizer
from memlint.analysis.transfer.modules.touched_parameters import note_constructor
from memlint.analysis.transfer.signatures import bind, is_abstract, is_left_open
from memlint.analysis.transfer.stores.class_places import note_made
from memlint.analysis.transfer.unresolved import unknown_call
from memlint.ir import nodes as ir


def call_function(
    fn: FunctionState, state: State, function: Function, args: Args, words: Words, at: int, expr: ir.Call | None
) -> V:
    """The value of a call of a project function. Applies its summary, and records the call."""
    if function.cls is not None and is_abstract(function):
        overriding = fn.analyser.program.overrides(function.cls, function.name)
        if overriding:
            return _call_overrides(fn, state, overriding, args, words, at, expr)
    starred = expr is not None and any(isinstance(arg, ir.Starred) for arg in expr.args)
    bound = bind(fn, state, function, args, words, starred=starred)
    own = bound[function.params[0].name] if function.takes_self and function.params else NOTHING
    trains = training(fn, state, own, expr.func if expr is not None else None) if own.kinds & MODULE else None
    record = CallRecord(
        function.key,
        at,
        state.grad,
        bound,
        NOTHING,
        fn.loop_ids,
        any(loop.counts for loop in fn.loops),
        dict(state.modes),
        trains=trains,
    )
    record.each_batch = any(loop.loop.over == "loader" for loop in fn.loops)
    fn.calls[at, function.key] = record
    if function.cls is not None and is_left_open(fn, function):
        return UNKNOWN_VALUE if expr is None else unknown_call(fn, state, expr, NOTHING, args, words)
    result = _in_each_case(fn, state, function, record, expr)
    if result is None:
        result = _applied(fn, state, function, record, bound, expr)
    if result is not None:
        record.result = result
        return result
    if fn.analyser.summaries.calls_itself(function) and fn.analyser.summary(function, bound, trains) is None:
        return NONE_VALUE
    return UNKNOWN_VALUE if expr is None else unknown_call(fn, state, expr, NOTHING, args, words)


def _applied(
    fn: FunctionState, state: State, function: Function, record: CallRecord, bound: dict[str, V], expr: ir.Call | None
) -> V | None:
    """The value of a function for the arguments ``bound``, with the effects of its summary applied. None if it has no
    usable summary (recursion, call depth)."""
    summary = fn.analyser.summary(function, bound, record.trains)
    if summary is None or summary.is_wide:
        return None
    if summary.exit is None:
        return NOTHING if not summary.cut_short and expr is not None else UNKNOWN_VALUE
    return apply(fn, state, summary, bound, record.at, expr)


def _in_each_case(
    fn: FunctionState, state: State, function: Function, record: CallRecord, expr: ir.Call | None
) -> V | None:
    """Case split: if a call leaves a flag unknown on which the function's effects depend, the join of the effects for
    each literal. None if there is no such flag, or if one of the cases has no summary."""
    if fn.flags or not function.names & {"backward"}:
        return None
    found = case_split(function.body, fn.analyser.flags(function))
    value = record.args.get(found[0]) if found is not None else None
    if found is None or value is None or value.const is not None or value.is_only(NONE):
        return None
    joined = NOTHING
    ends: list[tuple[State | None, int, int]] = []
    for literal in found[1]:
        inner, begin = state.copy(), fn.graphs.clock
        specialised = {**record.args, found[0]: V(DATA, size=SCALAR, const=literal)}
        result = _applied(fn, inner, function, record, specialised, expr)
        if result is None:
            return None
        if result.kinds:  # without a result, this case raises
            joined = join(joined, result)
            ends.append((inner, begin, fn.graphs.clock))
    after = join_branches(fn, ends)
    if after is not None:
        state.take(after)
    return joined


def _call_overrides(
    fn: FunctionState,
    state: State,
    functions: list[Function],
    args: Args,
    words: Words,
    at: int,
    expr: ir.Call | None,
) -> V:
    """The value of a call of an abstract method: the join over its overrides."""
    found = NOTHING
    ends: list[tuple[State | None, int, int]] = []
    for function in functions:
        inner, begin = state.copy(), fn.graphs.clock
        found = join(found, call_function(fn, inner, function, args, words, at, expr))
        ends.append((inner, begin, fn.graphs.clock))
    after = join_branches(fn, ends)
    if after is not None:
        state.take(after)
    return found


def loaded(fn: FunctionState, state: State, ref: Ref, args: Args, words: Words, expr: ir.Call) -> V:
    """``Net.from_pretrained(name)``, a method of a base class outside the project: a module as the class makes them,
    with weights from a file."""
    note_escaped_modules(fn, state, [*args, *words.values()])
    note_made(fn, expr)
    if last_name(expr.func) == "from_pretrained":
        state.modes["starts", ("made", expr.at)] = True
    instance = frozenset((Ref("instance", ref.key, ref.name),))
    return V(MODULE | INSTANCE, refs=instance, store=frozenset((expr.at,)))


def construct(fn: FunctionState, state: State, cls: Class, args: Args, words: Words, expr: ir.Call) -> V:
    """``Class(…)``: an instance whose attributes are those that its ``__init__`` stores."""
    program = fn.analyser.program
    note_escaped_modules(fn, state, [*args, *words.values()])
    ref = frozenset((Ref("instance", cls.module.key, cls.qual),))
    init = program.method(cls, "__init__")
    if program.is_module(cls):
        if init is not None:
            bound = bind(fn, state, init, [V(INSTANCE), *args], words)
            fn.calls[expr.at, init.key] = CallRecord(
                init.key, expr.at, state.grad, bound, NOTHING, fn.loop_ids, bool(fn.loops)
            )
        note_made(fn, expr)
        return V(MODULE | INSTANCE, refs=ref, store=frozenset((expr.at,)))
    note_constructor(fn, state, cls, args, words)
    _order, outside = program.ancestors(cls)
    if any(name.startswith("torch.autograd.") for name in outside):
        return UNKNOWN_VALUE
    if any("optim." in name for name in outside):
        note_optimizer(fn, state, next(iter(args), words.get("params")))
    if any("Dataset" in name for name in outside) or any("optim" in name.lower() for name in outside):
        return V(OPTIMIZER if any("optim." in name for name in outside) else INSTANCE, refs=ref)
    kind = user_containers.kind_of(program, cls)
    if kind == "dict" and user_containers.is_typed_dict(program, cls):
        fields, rest = user_containers.dict_content(fn, state, args, words)
        return make(fn, state, expr.at, "dict", rest, fields)
    key = expr.at
    state.heap[key] = Obj(kind or "instance", NOTHING, {}, fn.loop_ids, cls=cls, text=cls.qual)
    state.fresh |= {key}
    value = V(INSTANCE | (CONTAINER if kind else 0), objs=frozenset((key,)), refs=ref)
    if init is not None:
        call_function(fn, state, init, [value, *args], words, expr.at, expr)
        if kind:
            user_containers.fill_blindly(fn, state, value, args, words, expr)
    elif kind and not cls.is_dataclass:
        if program.method(cls, "__new__") is None:
            user_containers.fill_container(fn, state, kind, value, args, words)
        else:
            user_containers.fill_blindly(fn, state, value, args, words, expr)
    elif fields := _declared_fields(fn, state, cls, outside, args, words, expr.at):
        obj = state.heap[key]
        state.heap[key] = Obj(obj.kind, NOTHING, {**obj.fields, **fields}, obj.loops, cls=cls, text=cls.qual)
    return value


def _declared_fields(
    fn: FunctionState, state: State, cls: Class, outside: AbstractSet[str], args: Args, words: Words, at: int
) -> dict[str, V]:
    """The fields of an object of a class without a constructor: a dataclass, a named tuple, or a library class
    with fields by name (``class Output(BaseModel)``)."""
    named = {name: given for name, given in words.items() if name in cls.annotations}
    if not cls.is_dataclass and not any(name.endswith("NamedTuple") for name in outside):
        return named if outside else {}
    names = list(cls.annotations)
    fields = {**dict(zip(names, args, strict=False)), **named}
    for name, default in cls.attributes.items():
        if name not in fields:
            made = _made_by_factory(fn, state, (at, name), default) if cls.is_dataclass else None
            fields[name] = made or fn.analyser.evaluate_constant(cls.module, default)
    if not cls.is_dataclass:
        fields.update({str(i): fields[name] for i, name in enumerate(names) if name in fields})
    return fields


#: the container that a field's ``default_factory`` makes for each object
_FACTORIES = {"list": "list", "dict": "dict", "set": "set", "deque": "deque", "OrderedDict": "dict", "Counter": "dict"}


def _made_by_factory(fn: FunctionState, state: State, key: Source, default: ir.Expr) -> V | None:
    """The container of ``losses: list = field(default_factory=list)``; None for another default."""
    words = default.keywords if isinstance(default, ir.Call) else ()
    made = next((word.value for word in words if word.name == "default_factory"), None)
    kind = _FACTORIES.get(last_name(made)) if made is not None else None
    return make(fn, state, key, kind, NOTHING) if kind is not None else None
