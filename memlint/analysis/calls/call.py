"""Evaluation of calls: which callables a call may run, and their joined effect."""

from __future__ import annotations

from collections.abc import Collection

from memlint import knowledge
from memlint.analysis.calls import method_runs, methods
from memlint.analysis.calls.functions import call_function, construct, loaded
from memlint.analysis.domain.call_arity import fitting
from memlint.analysis.domain.state import State, join_states
from memlint.analysis.domain.summary.function_state import FunctionState
from memlint.analysis.domain.values import (
    CALLABLE,
    CONTAINER,
    EMPTY,
    INSTANCE,
    MODULE,
    NOTHING,
    UNKNOWN,
    UNKNOWN_VALUE,
    Args,
    Path,
    Ref,
    V,
    Words,
    join,
    ordered,
)
from memlint.analysis.index.program import Class
from memlint.analysis.syntax.syntax import dotted, is_name
from memlint.analysis.transfer import containers, records, user_containers
from memlint.analysis.transfer import evaluate as evaluating
from memlint.analysis.transfer.comprehensions import collects, listed
from memlint.analysis.transfer.library import external_calls, instances
from memlint.analysis.transfer.library.models import run_module
from memlint.analysis.transfer.unresolved import unknown_call
from memlint.ir import nodes as ir


def evaluate_call(fn: FunctionState, state: State, expr: ir.Call) -> V:
    """The value of a call. Its effects are applied to ``state``."""
    func = expr.func
    if isinstance(func, ir.Attr) and isinstance(func.value, ir.Call) and is_name(func.value.func, "super"):
        args, words = arguments(fn, state, expr)
        return _super_call(fn, state, expr, func.name, args, words)
    if isinstance(func, ir.Attr):
        receiver = evaluating.evaluate(fn, state, func.value)
        args, words = arguments(fn, state, expr)
        return methods.call_method(fn, state, expr, receiver, func.name, args, words)
    callee = evaluating.evaluate(fn, state, func)
    args, words = arguments(fn, state, expr)
    return call_value(fn, state, callee, args, words, expr)


def arguments(fn: FunctionState, state: State, expr: ir.Call) -> tuple[Args, Words]:
    args: Args = []
    collected = len(expr.args) == 1 and collects(expr.func)
    for arg in expr.args:
        value = evaluating.evaluate(fn, state, listed(arg) if collected else arg)
        args.append(value)
    words: Words = {}
    for number, word in enumerate(expr.keywords):
        value = evaluating.evaluate(fn, state, word.value)
        held = [state.heap.get(key) for key in value.objs] if word.name is None else []
        known = value.is_only(CONTAINER) and not value.syms
        if known and len(held) == 1 and held[0] is not None and held[0].kind == "dict" and not held[0].elem.kinds:
            words.update(held[0].fields)  # ``**options`` with known keys
        else:
            words[word.name or f"**{number}"] = value
    return args, words


def _super_call(fn: FunctionState, state: State, expr: ir.Call, name: str, args: Args, words: Words) -> V:
    cls = fn.function.cls
    if cls is None or not fn.function.params:
        return UNKNOWN_VALUE
    assert isinstance(expr.func, ir.Attr) and isinstance(expr.func.value, ir.Call)
    receivers = expr.func.value.args[1:2]
    own = fn.function.params[0]
    receiver = evaluating.evaluate(fn, state, receivers[0] if receivers else ir.Name(own.at, own.name))
    method = fn.analyser.program.method(cls, name, after=cls)
    if method is not None:
        return call_function(fn, state, method, [receiver, *args], words, expr.at, expr)
    held = user_containers.call_inherited(fn, state, expr, receiver, name, args, words)
    if held is not None:
        return held
    if receiver.kinds & MODULE and _computes_outside(fn, cls, name):
        # the library's forward runs, not that of the object's own class
        return run_module(fn, state, expr, receiver.but(refs=EMPTY), args, words)
    return unknown_call(fn, state, expr, NOTHING, args, words)


def _computes_outside(fn: FunctionState, cls: Class, name: str) -> bool:
    """Whether a library's method of this name runs the model. Of torch's own modules, only the forward does."""
    if name in ("forward", "__call__"):
        return True
    _, outside = fn.analyser.program.ancestors(cls)
    return not knowledge.is_bookkeeping(name) and not all(base.startswith("torch.nn.") for base in outside)


# -------------------------------------------------------------------------------------- callables


def call_value(fn: FunctionState, state: State, callee: V, args: Args, words: Words, expr: ir.Call) -> V:
    """The value of calling a value: the join over all callables that it may be."""
    found = NOTHING
    known = (
        not callee.kinds & UNKNOWN
        or method_runs.called_as_model(fn, state, callee, args, words, expr)
        or _has_mode(state, callee)
    )
    if callee.may_be_module() and known:
        callee = callee.as_module()  # a value loaded from a file is a module if it is called
    for ref in ordered(_with_one_owner(fitting(fn, callee.refs, expr))):
        found = join(found, _call_ref(fn, state, ref, callee, args, words, expr))
    if callee.kinds & MODULE and not callee.kinds & CALLABLE and not any(ref.kind == "instance" for ref in callee.refs):
        found = join(found, run_module(fn, state, expr, callee, args, words))
    for key, obj in state.objects(callee):
        if obj.cls is not None:
            method = fn.analyser.program.method(obj.cls, "__call__")
            if method is not None:
                receiver = V(INSTANCE, objs=frozenset((key,)), refs=callee.refs)
                found = join(found, call_function(fn, state, method, [receiver, *args], words, expr.at, expr))
    if not found.kinds or callee.kinds & UNKNOWN:
        guessed = _method_by_name(fn, state, callee, args, words, expr)
        if guessed is None:
            guessed = _handed_over(fn, state, callee, args, words, expr)
        found = join(found, unknown_call(fn, state, expr, callee, args, words))
        found = join(found, guessed) if guessed is not None else found
    return found


def _with_one_owner(refs: Collection[Ref]) -> frozenset[Ref]:
    """The callables, with a method of several possible objects as one, on the join of these objects: ``a.encode if
    first else b.encode``."""
    if len(refs) < 2:
        return frozenset(refs)
    owners: dict[Ref, V] = {}
    for ref in refs:
        plain = ref._replace(self_=None)
        owner = NOTHING if ref.kind != "func" or ref.self_ is None else ref.self_
        owners[plain if owner.kinds else ref] = join(owners.get(plain, NOTHING), owner)
    return frozenset(ref._replace(self_=owner) if owner.kinds else ref for ref, owner in owners.items())


def _method_by_name(fn: FunctionState, state: State, callee: V, args: Args, words: Words, expr: ir.Call) -> V | None:
    """The result of calling a method of an unknown object, by the method's name: ``getattr(callback,
    "on_step")(loss)``, ``step = agent.step``. None if no method fits."""
    if isinstance(expr.func, ir.Attr) or not callee.is_only(UNKNOWN) or len(callee.syms) != 1:
        return None
    (path,) = callee.syms
    if not path.steps or not path.steps[-1].startswith(".") or len(path.steps) == 1:
        return None
    around = path.around
    receiver = V(UNKNOWN, frozenset((around,)), syms=frozenset((around,)))
    return methods.by_name(fn, state, expr, receiver, path.steps[-1][1:], args, words)


def _handed_over(fn: FunctionState, state: State, callee: V, args: Args, words: Words, expr: ir.Call) -> V | None:
    """The result of calling a member of a collection that callers have filled: ``for hook in self.hooks: hook(self)``.
    Each may run, and any other function as well. None where no callers are known to fill it."""
    known = fn.analyser.facts.handlers(fn.function, callee)
    if not 0 < len(known) <= methods.MAX_CANDIDATES:
        return None
    found, after, before = NOTHING, state.copy(), set(fn.stores)
    in_turn = [loop for loop in fn.loops if loop.counts and dotted(expr.func) in loop.targets]
    for loop in in_turn:
        loop.counts = False  # each of its rounds calls another function
    for ref in ordered(known):
        inner = state.copy()
        found = join(found, _call_ref(fn, inner, ref, callee, args, words, expr))
        joined = join_states(after, inner)
        assert joined is not None
        after = joined
    for loop in in_turn:
        loop.counts = True
    for key in set(fn.stores) - before:
        fn.stores[key].guessed = True
    state.take(after)
    return found


def _has_mode(state: State, callee: V) -> bool:
    """Whether an unknown value has been put into eval or train mode, also as a member of a collection: ``for net in
    nets.values(): net.eval()``."""
    if not state.modes or not callee.is_only(UNKNOWN):
        return False
    places = ((path, Path(path.root, (*path.steps[:-1], "[]"))) for path in callee.syms if path.steps)
    return any(place in state.modes for pair in places for place in pair if place.steps[-1].startswith("["))


def _call_ref(fn: FunctionState, state: State, ref: Ref, callee: V, args: Args, words: Words, expr: ir.Call) -> V:
    program = fn.analyser.program
    if ref.kind == "func":
        function = fn.analyser.function(ref)
        if function is None:
            return unknown_call(fn, state, expr, callee, args, words)
        if ref.self_ is None or not function.takes_self:
            return call_function(fn, state, function, args, words, expr.at, expr)
        before = len(fn.graphs.nodes)
        result = call_function(fn, state, function, [ref.self_, *args], words, expr.at, expr)
        if isinstance(expr.func, ir.Name) and ref.self_.kinds & MODULE and len(fn.graphs.nodes) > before:
            method_runs.note_method_run(
                fn, state, expr, ref.self_, function.name, result, args
            )  # ``encode = net.encode``
        return result
    if ref.kind == "class":
        cls = fn.analyser.cls(ref)
        return construct(fn, state, cls, args, words, expr) if cls is not None else UNKNOWN_VALUE
    if ref.kind == "loads":
        return loaded(fn, state, ref, args, words, expr)
    if ref.kind == "instance":
        cls = program.module(ref.key).cls(ref.name)
        if cls is None:
            return UNKNOWN_VALUE
        if program.is_module(cls):
            return run_module(fn, state, expr, callee, args, words)
        method = program.method(cls, "__call__")
        if method is not None and not callee.objs:
            return call_function(fn, state, method, [callee, *args], words, expr.at, expr)
        return NOTHING
    if ref.kind == "extinstance":
        if ref.args:
            return instances.call_chain(fn, state, ref.args, args, words, expr, callee)
        return instances.call_instance(fn, state, ref.name, args, words, expr, callee)
    if ref.kind == "partial":
        return call_value(fn, state, ref.self_, [*ref.args, *args], {**dict(ref.keywords), **words}, expr)
    if ref.kind == "bound":
        return containers.call_bound(fn, state, ref, args, words, expr)
    if ref.kind == "record":
        return records.record(fn, state, ref.args, args, words, expr)
    if ref.kind == "ext":
        return external_calls.call_external(fn, state, ref.name, args, words, expr)
    return NOTHING
