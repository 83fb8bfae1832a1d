"""Calls: what is called, and what that does."""

from __future__ import annotations

import re

from memlint import knowledge
from memlint.flow import containers, external, hotloops, instances, records
from memlint.flow import evaluate as evaluating
from memlint.flow.comprehensions import collects, listed
from memlint.flow.frame import Frame
from memlint.flow.functions import call_function, construct
from memlint.flow.heap import deep
from memlint.flow.methods import call_method
from memlint.flow.models import run_module
from memlint.flow.ops import asks_for_count, names_model, names_number
from memlint.flow.owner import give_away
from memlint.flow.placement import device_of
from memlint.flow.program import Class
from memlint.flow.state import OFF, State
from memlint.flow.syntax import dotted, last_name, text
from memlint.flow.values import (
    BATCH,
    CALLABLE,
    CONTAINER,
    CPU,
    DATA_VALUE,
    EMPTY,
    INSTANCE,
    MODULE,
    NONE_VALUE,
    NOTHING,
    OUTPUT,
    SCALAR,
    SOME_SIZE,
    TENSOR,
    TENSORS,
    TREE,
    UNKNOWN,
    UNKNOWN_VALUE,
    Args,
    Path,
    Ref,
    Source,
    V,
    Words,
    join,
    ordered,
)
from memlint.ir import nodes as ir


def evaluate_call(frame: Frame, state: State, expr: ir.Call) -> V:
    """The value of a call; its effects go to ``state``."""
    func = expr.func
    if isinstance(func, ir.Attr) and _is_super(func.value):
        args, words = arguments(frame, state, expr)
        return _super_call(frame, state, expr, func.name, args, words)
    if isinstance(func, ir.Attr):
        receiver = evaluating.evaluate(frame, state, func.value)
        args, words = arguments(frame, state, expr)
        return call_method(frame, state, expr, receiver, func.name, args, words)
    callee = evaluating.evaluate(frame, state, func)
    args, words = arguments(frame, state, expr)
    return call_value(frame, state, callee, args, words, expr)


def arguments(frame: Frame, state: State, expr: ir.Call) -> tuple[Args, Words]:
    args: Args = []
    collected = len(expr.args) == 1 and collects(expr.func)
    for arg in expr.args:
        value = evaluating.evaluate(frame, state, listed(arg) if collected else arg)
        args.append(value)
    words: Words = {}
    for number, word in enumerate(expr.keywords):
        value = evaluating.evaluate(frame, state, word.value)
        held = [state.heap.get(key) for key in value.objs] if word.name is None else []
        known = value.is_only(CONTAINER) and not value.syms
        if known and len(held) == 1 and held[0] is not None and held[0].kind == "dict" and not held[0].elem.kinds:
            words.update(held[0].fields)  # ``**options``, of which all keys are known
        else:
            words[word.name or f"**{number}"] = value
    return args, words


def _is_super(expr: ir.Expr) -> bool:
    return isinstance(expr, ir.Call) and isinstance(expr.func, ir.Name) and expr.func.id == "super"


def _super_call(frame: Frame, state: State, expr: ir.Call, name: str, args: Args, words: Words) -> V:
    cls = frame.function.cls
    if cls is None or not frame.function.params:
        return UNKNOWN_VALUE
    assert isinstance(expr.func, ir.Attr) and isinstance(expr.func.value, ir.Call)
    given = expr.func.value.args[1:2]
    own = frame.function.params[0]
    receiver = evaluating.evaluate(frame, state, given[0] if given else ir.Name(own.at, own.name))
    method = frame.analyser.program.method(cls, name, after=cls)
    if method is not None:
        return call_function(frame, state, method, [receiver, *args], words, expr.at, expr)
    if name == "__init__":
        return NONE_VALUE
    if receiver.kinds & MODULE and _computes_outside(frame, cls, name):
        return run_module(frame, state, expr, receiver, args, words)
    return unknown_call(frame, state, expr, NOTHING, args, words)


def _computes_outside(frame: Frame, cls: Class, name: str) -> bool:
    """Whether a library's method runs the model: of torch's own modules, none but the forward does."""
    if name in ("forward", "__call__"):
        return True
    _, outside = frame.analyser.program.ancestors(cls)
    return not knowledge.is_bookkeeping(name) and not all(base.startswith("torch.nn.") for base in outside)


# -------------------------------------------------------------------------------------- callables


def call_value(frame: Frame, state: State, callee: V, args: Args, words: Words, expr: ir.Call) -> V:
    """Call a value: the join over all that it may be."""
    found = NOTHING
    known = not callee.kinds & UNKNOWN or _called_as_model(callee, args, expr) or _has_mode(state, callee)
    if callee.may_be_module() and known:
        callee = callee.as_module()  # what a file held, and is called
    for ref in ordered(callee.refs):
        found = join(found, _call_ref(frame, state, ref, callee, args, words, expr))
    if callee.kinds & MODULE and not callee.kinds & CALLABLE and not any(ref.kind == "instance" for ref in callee.refs):
        found = join(found, run_module(frame, state, expr, callee, args, words))
    for key in ordered(callee.objs):
        obj = state.heap.get(key)
        if obj is not None and obj.cls is not None:
            method = frame.analyser.program.method(obj.cls, "__call__")
            if method is not None:
                receiver = V(INSTANCE, objs=frozenset((key,)), refs=callee.refs)
                found = join(found, call_function(frame, state, method, [receiver, *args], words, expr.at, expr))
    if not found.kinds or callee.kinds & UNKNOWN:
        found = join(found, unknown_call(frame, state, expr, callee, args, words))
    return found


def _called_as_model(callee: V, args: Args, expr: ir.Call) -> bool:
    """``model(batch)``: what nothing is known of but its name, given a tensor on the device first."""
    return (
        callee.is_only(UNKNOWN)
        and bool(args)
        and args[0].is_only(TENSORS)
        and args[0].device != CPU
        and names_model(text(expr.func))
    )


def _has_mode(state: State, callee: V) -> bool:
    """Whether it was put into eval or train mode, by whatever name: ``for net in nets.values(): net.eval()``."""
    if not state.modes or not callee.is_only(UNKNOWN):
        return False
    places = ((path, Path(path.root, (*path.steps[:-1], "[]"))) for path in callee.syms if path.steps)
    return any(place in state.modes for pair in places for place in pair if place.steps[-1].startswith("["))


def _call_ref(frame: Frame, state: State, ref: Ref, callee: V, args: Args, words: Words, expr: ir.Call) -> V:
    program = frame.analyser.program
    if ref.kind == "func":
        function = frame.analyser.function(ref)
        if function is None:
            return unknown_call(frame, state, expr, callee, args, words)
        given = [ref.self_, *args] if ref.self_ is not None and function.takes_self else args
        return call_function(frame, state, function, given, words, expr.at, expr)
    if ref.kind == "class":
        cls = frame.analyser.cls(ref)
        return construct(frame, state, cls, args, words, expr) if cls is not None else UNKNOWN_VALUE
    if ref.kind == "instance":
        cls = program.module(ref.key).cls(ref.name)
        if cls is None:
            return UNKNOWN_VALUE
        if program.is_module(cls):
            return run_module(frame, state, expr, callee, args, words)
        method = program.method(cls, "__call__")
        if method is not None and not callee.objs:
            return call_function(frame, state, method, [callee, *args], words, expr.at, expr)
        return NOTHING
    if ref.kind == "extinstance":
        if ref.args:
            return instances.call_chain(frame, state, ref.args, args, words, expr, callee)
        return instances.call_instance(frame, state, ref.name, args, words, expr, callee)
    if ref.kind == "partial":
        return call_value(frame, state, ref.self_, [*ref.args, *args], {**dict(ref.keywords), **words}, expr)
    if ref.kind == "bound":
        return containers.call_bound(frame, state, ref, args, words, expr)
    if ref.kind == "record":
        return records.record(frame, state, ref.args, args, words, expr)
    if ref.kind == "ext":
        return external.call_external(frame, state, ref.name, args, words, expr)
    return NOTHING


def unknown_call(frame: Frame, state: State, expr: ir.Call, callee: V, args: Args, words: Words) -> V:
    """A call that cannot be resolved: its result may carry any graph or none, its arguments leave."""
    if isinstance(expr.func, ir.Attr) and asks_for_count(expr.func.name):
        return DATA_VALUE
    parents: frozenset[Source] = callee.src if isinstance(expr.func, ir.Attr) else EMPTY
    alone = isinstance(frame.statement, ir.ExprStmt) and frame.statement.value is expr
    guess = not alone and (is_loss(expr.func) or _made_as_loss(callee) or _named_loss(frame, expr, args))
    logged = alone and last_name(expr.func) in _LOGS
    for value in (*args, *words.values()):
        inner = deep(frame, state, value)
        parents |= inner.src
        leave(frame, value, inner, scored=guess, logged=logged)
    give_away(frame, state, [*args, *words.values()])
    symbol = next(iter(sorted(callee.syms)), None)
    src = frame.record(
        state,
        expr.at,
        expr.at,
        text(expr),
        parents,
        unknown=not guess,
        callee=symbol,
        guess=guess,
    )
    if guess and src:
        return V(TENSOR, src, size=SCALAR)
    if not any(path.steps[-1:] in ((), ("." + dotted(expr.func).rsplit(".", 1)[-1],)) for path in callee.syms):
        return V(UNKNOWN, src, store=frozenset((expr.at,)))
    # a callable that was passed in: whatever tensors it gives are where its arguments are
    size = _given_size(frame, state, args, text(expr.func))
    kinds = TREE if state.grad == OFF and size == OUTPUT and names_model(text(expr.func)) else UNKNOWN
    return V(kinds, src, device=device_of(frame, state, args), size=size, store=frozenset((expr.at,)))


def _given_size(frame: Frame, state: State, args: Args, shown: str) -> int:
    given = [deep(frame, state, value) for value in args if value.kinds & (TENSORS | CONTAINER)]
    large = any(value.kinds & TENSORS and value.size in (BATCH, OUTPUT, SOME_SIZE) for value in given)
    return OUTPUT if large and not names_number(shown) else SOME_SIZE


_LOSS = re.compile(r"criterion|(^|_)crit$|loss(_?(f|fn|fun|func|fct|function|module|layer|criterion))?_?\d*$")


def is_loss(func: ir.Expr) -> bool:
    """Whether a callee that cannot be resolved is called as losses are: its result has its arguments' graph."""
    return _LOSS.search(dotted(func).rsplit(".", 1)[-1].lower()) is not None


#: classes of libraries whose objects are losses
_LOSS_CLASS = re.compile(r"(Loss|Criterion)\d*$")


def _made_as_loss(callee: V) -> bool:
    """Whether a callee is what a library's class of losses made."""
    return any(ref.kind == "foreign" and _LOSS_CLASS.search(ref.name) is not None for ref in callee.refs)


#: names of a loss that somebody trains by or sums, and none of what is kept for a log
_LOSS_NAME = re.compile(r"(\w+_)?loss\d*")


def _named_loss(frame: Frame, expr: ir.Call, args: Args) -> bool:
    """Whether a library's function is given what has a graph for certain, and its result is called a loss. (Libraries
    that compute on the host would raise; the project's own functions may give numbers.)"""
    statement = frame.statement
    if not isinstance(statement, ir.Assign) or statement.value is not expr or len(statement.targets) != 1:
        return False
    target = statement.targets[0]
    if not isinstance(target, ir.Name) or not _LOSS_NAME.fullmatch(target.id.lower()) or not args:
        return False
    kind, _ = frame.analyser.program.find_expression(frame.module, expr.func, frame.function)
    return kind == "ext" and args[0].is_only(TENSORS) and frame.graphs.attached(args[0].src)[0] == "yes"


#: methods of loggers, which show what they are given
_LOGS = frozenset({"add_scalar", "add_scalars", "add_histogram", "add_image", "add_images", "log_scalar", "log_metric"})


def leave(frame: Frame, value: V, inner: V, *, scored: bool = False, logged: bool = False) -> None:
    """A value goes to code that cannot be followed (``scored``: to a loss, ``logged``: to a log)."""
    frame.escape(inner.src | {("elem", key) for key in value.objs}, scored=scored, logged=logged)
    hotloops.lend(frame, inner)
