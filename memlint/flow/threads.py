"""Threads: grad mode is each thread's own, so what one runs records, whatever block it was started in."""

from __future__ import annotations

from memlint.flow import call as calls
from memlint.flow import comprehensions
from memlint.flow.collecting import listed
from memlint.flow.frame import Frame
from memlint.flow.heap import elements_of, make
from memlint.flow.state import ON, State
from memlint.flow.values import CALLABLE, MODULE, UNKNOWN_VALUE, Args, Ref, V, Words
from memlint.ir import nodes as ir

#: classes of pools whose members are threads of this process
_POOLS = frozenset(
    {
        "concurrent.futures.ThreadPoolExecutor",
        "concurrent.futures.thread.ThreadPoolExecutor",
        "multiprocessing.pool.ThreadPool",
        "multiprocessing.dummy.Pool",
    }
)
#: of what holds the result of one call until somebody asks for it
_PROMISE = Ref("promise", "", "")


def call_method(
    frame: Frame, state: State, expr: ir.Call, receiver: V, name: str, args: Args, words: Words
) -> V | None:
    """``pool.submit(f, x)``, ``pool.map(f, xs)``, ``promise.result()``; None for other methods and receivers."""
    if not receiver.refs:
        return None
    if name == "result" and _PROMISE in receiver.refs:
        return elements_of(frame, state, receiver)
    if not any(ref.kind == "foreign" and ref.name in _POOLS for ref in receiver.refs):
        return None
    if not expr.args or not args or not args[0].kinds & (CALLABLE | MODULE):
        return None
    if name == "submit":
        made = run(frame, state, expr, expr.args[0], args[0], args[1:], words)
        return make(frame, state, (expr.at, "promise"), "list", made).but(refs=frozenset((_PROMISE,)))
    mapped = listed(ir.Call(expr.at, ir.Name(expr.at, "map"), expr.args, ()))
    if name not in ("map", "imap", "imap_unordered") or not isinstance(mapped, ir.Comprehension):
        return None
    around, state.grad = state.grad, ON
    result = comprehensions.comprehension(frame, state, mapped)
    state.grad = around
    return result


def run(frame: Frame, state: State, expr: ir.Call, shown: ir.Expr, callee: V, args: Args, words: Words) -> V:
    """What a function gives that another thread calls; ``shown``: the expression that names it."""
    around, state.grad = state.grad, ON
    result = calls.call_value(frame, state, callee, args, words, ir.Call(expr.at, shown, expr.args[1:], expr.keywords))
    state.grad = around
    return result


def thread(frame: Frame, state: State, expr: ir.Call, words: Words) -> V:
    """``threading.Thread(target=f, args=(x, y))``"""
    target, given = words.get("target"), words.get("args")
    shown = next((word.value for word in expr.keywords if word.name == "target"), None)
    if target is not None and shown is not None and target.kinds & (CALLABLE | MODULE):
        held = [state.heap.get(key) for key in given.objs] if given is not None else []
        known = held[0] if len(held) == 1 else None
        args = [*known.fields.values()] if known is not None and known.kind == "tuple" and not known.elem.kinds else []
        if args or given is None:
            run(frame, state, expr, shown, target, args, {})
    return UNKNOWN_VALUE
