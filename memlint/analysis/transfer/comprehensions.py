"""Comprehensions: loops with variables of their own that make a container."""

from __future__ import annotations

import msgspec

from memlint.analysis.domain.state import State
from memlint.analysis.domain.summary.function_state import FunctionState
from memlint.analysis.domain.values import ACTIVATION, NOTHING, OUTPUT, PER_BATCH, V, ordered
from memlint.analysis.syntax.bindings import names_read, reads_any
from memlint.analysis.syntax.expression_text import text
from memlint.analysis.syntax.memo import kept
from memlint.analysis.syntax.syntax import last_name
from memlint.analysis.transfer.assignment import assign
from memlint.analysis.transfer.heap import element, make
from memlint.analysis.transfer.held_values import tensors_within
from memlint.analysis.transfer.library.feeding import assume_loader, feeds_by_callee, feeds_device, names_loader
from memlint.analysis.transfer.loops import describe, over_loader, run_generators_in
from memlint.analysis.transfer.narrowing import pick_members
from memlint.analysis.transfer.stores.stores import end_iteration, store_value
from memlint.ir import nodes as ir


def comprehension(fn: FunctionState, state: State, expr: ir.Comprehension) -> V:
    """The container that a comprehension makes, whose member is the value of one interpreted round."""
    before = state.heap.get(expr.at)
    result = make(fn, state, expr.at, expr.kind if expr.kind in ("set", "dict") else "list", NOTHING)
    inner = fn.fork(state)
    if before is not None:
        inner.heap[expr.at] = before  # the container of the round before, which this one may read
    pushed = 0
    for one in expr.fors:
        body = _body(expr)
        feeds = feeds_device(one.target, body) or names_loader(one.iter) or feeds_by_callee(fn, inner, one.target, body)
        if feeds:
            assume_loader(fn, inner, one.iter, one.target)
        backwards = len(fn.backwards)
        source = fn.interpreter.evaluate(fn, inner, one.iter)
        shown = f"for {text(one.target, 30)} in {text(one.iter, 40)}"
        loop = describe(fn, inner, expr.at, source, one.iter, one.target, shown)
        run_generators_in(fn, loop, backwards)
        batches = feeds or PER_BATCH in source.refs or over_loader(source)
        if loop.loop.over == "unknown" and loop.loop.names_data and batches:
            loop.loop = msgspec.structs.replace(loop.loop, over="loader")
        loop.counts = loop.counts and loop.loop.over in _COUNTING.get(expr.kind, ("loader", "range"))
        fn.loops.append(loop)
        pushed += 1
        bind(fn, inner, one.target, element(fn, inner, source))
        for test in one.ifs:
            fn.interpreter.evaluate(fn, inner, test)
            pick_members(fn, inner, test, True)
    if expr.key is not None:
        fn.interpreter.evaluate(fn, inner, expr.key)
    value = fn.interpreter.evaluate(fn, inner, expr.element)
    inner.heap[expr.at] = state.heap[expr.at]
    if fn.loops[-pushed].counts:
        store_value(fn, inner, result, "append", value, expr.at, _shown(expr), _name_of(fn, expr))
        if fn.loops[-pushed].loop.over == "loader" and _of_model(tensors_within(fn, inner, value)):
            inner.env["<made>"] = result  # a name for the container, to which no variable refers yet
            end_iteration(fn, inner, fn.loops[-pushed])
    for _ in range(pushed):
        fn.loops.pop()
    for key in ordered(result.objs):
        inner.heap[key] = inner.heap[key].with_elem(value)
    state.heap, state.sym = inner.heap, inner.sym
    own = {name for one in expr.fors for name in names_read(one.target)}
    # what the rounds do to values in place (``[h.detach_() for h in states]``) holds for the variables around
    state.env.update({name: inner.env[name] for name in state.env.keys() & inner.env.keys() - own})
    state.freed_may, state.freed_must, state.pending, state.modes = (
        inner.freed_may,
        inner.freed_must,
        inner.pending,
        inner.modes,
    )
    return result


#: which loops of a comprehension count as iterations, by its kind; a "collected" one is a generator whose members are
#: kept
_COUNTING: dict[str, tuple[str, ...]] = {"generator": (), "collected": ("loader",)}


def _of_model(value: V) -> bool:
    """Whether the member of a round was computed by a model. (What merely moves the members of a batch makes few.)"""
    return bool(value.src) or value.size in (ACTIVATION, OUTPUT)


def _name_of(fn: FunctionState, expr: ir.Comprehension) -> str:
    """What the container is called: by the variable or attribute that it is assigned to, else by its source text."""
    match fn.statement:
        case ir.Assign(targets=(ir.Name() | ir.Attr() as target,), value=value) if _is_whole(value, expr):
            return text(target)
        case _:
            begin, end = "{}" if expr.kind in ("set", "dict") else "[]"
            return f"{begin}{text(expr.element, 30)} for …{end}"


def _is_whole(value: ir.Expr, expr: ir.Comprehension) -> bool:
    """Whether an expression is the container that a comprehension makes: it, ``list(f(x) for x in xs)``,
    ``list(map(f, xs))``."""
    if isinstance(value, ir.Call) and last_name(value.func) in ("list", "tuple", "set") and len(value.args) == 1:
        value = value.args[0]
    return value.at == expr.at


def _shown(expr: ir.Comprehension) -> str:
    """The source text of what is kept; of ``[item for item in xs]``, ``xs``. (A call that collects the items of a
    generator has no such whole: nothing but the items can be detached.)"""
    plain = expr.kind != "collected" and expr.fors[-1].target == expr.element
    return text(expr.fors[-1].iter if plain else expr.element)


@kept
def _body(expr: ir.Comprehension) -> tuple[ir.Stmt, ...]:
    """The element of a comprehension as the body of a loop."""
    return (ir.ExprStmt(expr.at, expr.element),)


def bind(fn: FunctionState, state: State, target: ir.Expr, value: V) -> None:
    """Bind a comprehension's target, a name of its own whatever the enclosing function binds."""
    fn.own_names |= names_read(target)
    assign(fn, state, target, value, None)


#: builtins that put all members of their argument into a container or a sum
_COLLECTORS = frozenset({"list", "tuple", "set", "sorted", "sum"})


def collects(func: ir.Expr) -> bool:
    """Whether a call of this function keeps all members of its argument: in a new container, in an existing one, or
    in a sum."""
    return func.id in _COLLECTORS if isinstance(func, ir.Name) else isinstance(func, ir.Attr) and func.name == "extend"


@kept
def listed(iterable: ir.Expr) -> ir.Expr:
    """``f(x) for x in xs`` and ``map(f, xs)`` as a list comprehension; other expressions unchanged."""
    if isinstance(iterable, ir.Comprehension) and iterable.kind == "generator":
        return ir.Comprehension(iterable.at, "collected", iterable.element, None, iterable.fors)
    if (
        isinstance(iterable, ir.Call)
        and isinstance(iterable.func, ir.Name)
        and iterable.func.id == "map"
        and len(iterable.args) == 2
        and not iterable.keywords
        and not any(isinstance(arg, ir.Starred) for arg in iterable.args)
    ):
        mapped, over = iterable.args
        free = "item"
        while reads_any(mapped, {free}):  # ``map(item.score, xs)`` reads a variable of that name
            free += "_"
        name = ir.Name(iterable.at, free)
        made: ir.Expr = ir.Call(iterable.at, mapped, (name,), ())
        if isinstance(mapped, ir.Lambda) and len(mapped.params) == 1 and mapped.params[0].kind == "positional":
            name, made = ir.Name(iterable.at, mapped.params[0].name), mapped.body
        return ir.Comprehension(iterable.at, "collected", made, None, (ir.CompFor(name, over, (), False),))
    return iterable


@kept
def members_of(iterable: ir.Expr) -> ir.Comprehension:
    """``list(xs)`` as the comprehension ``[item for item in xs]``."""
    item = ir.Name(iterable.at, "item")
    return ir.Comprehension(iterable.at, "collected", item, None, (ir.CompFor(item, iterable, (), False),))
